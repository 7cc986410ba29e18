"""A hardened execution pipeline for the tools that language models call.

    from seawall import Pipeline

    pipeline = Pipeline([search, send_mail])
    result = await pipeline.call("search", {"query": "seawall"})

Names are loaded when they are first used, so that importing the package costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from seawall.contract.annotations import Annotations, Risk
    from seawall.contract.approval import (
        ApprovalBatch,
        ApprovalConflict,
        ApprovalNotFound,
        ApprovalStatus,
    )
    from seawall.contract.content import (
        AudioContent,
        Content,
        EmbeddedResource,
        ImageContent,
        ResourceLink,
        TextContent,
    )
    from seawall.contract.decision import Action, Decision, PendingApproval, Prepared
    from seawall.contract.errors import (
        ConfigurationError,
        Fault,
        MissingExtra,
        SealBroken,
        StoreUnavailable,
    )
    from seawall.contract.failure import Failure, FailureCode, Issue, ToolFailed
    from seawall.contract.hook import Abort, Defer, Deny, Replace, Rewrite, Stop
    from seawall.contract.optional_policies import (
        AdaptiveLimitPolicy,
        CachePolicy,
        FallbackPolicy,
        HedgePolicy,
        RetryBudgetPolicy,
    )
    from seawall.contract.policy import PRESETS, BreakerPolicy, RunPolicy
    from seawall.contract.result import ToolResult
    from seawall.contract.shortcut import Param, Shortcut, ShortcutStep
    from seawall.contract.span import Digest, Outcome, Span
    from seawall.contract.tool import Tool, ToolCall
    from seawall.contract.turn import TurnEvent, TurnOutcome, TurnStatus
    from seawall.edges.adapters import (
        to_fastmcp,
        to_langchain,
        to_mcp_server,
        to_openai_agents,
        to_pydantic_ai,
    )
    from seawall.layers.environment import Environment
    from seawall.layers.risk_gate import Gate
    from seawall.layers.risk_policies import AllowlistPolicy, RiskPolicy
    from seawall.layers.risk_questions import Answer
    from seawall.layers.risk_rules import ArgumentRule, RuledPolicy
    from seawall.orchestration.approvals.desk import Approvals
    from seawall.orchestration.approvals.settings import ApprovalSettings
    from seawall.orchestration.batch import BatchRunner
    from seawall.orchestration.hooks import Hook, HookContext
    from seawall.orchestration.loop import LoopDetector
    from seawall.orchestration.loop_judge import LoopQuestion, LoopVerdict
    from seawall.orchestration.loop_policy import LoopPolicy
    from seawall.orchestration.outcome import BatchOutcome
    from seawall.orchestration.pipeline import Pipeline
    from seawall.orchestration.shortcut_store import ShortcutStore
    from seawall.orchestration.shortcuts import Shortcuts
    from seawall.pipeline.context import ToolContext
    from seawall.pipeline.invocation import Handler, Invocation
    from seawall.pipeline.layer import Layer, LayerContext, LayerRecipe, compose
    from seawall.pipeline.session import Permissions, Services, Session
    from seawall.policy.changes import Changes, Family
    from seawall.policy.model import Policies
    from seawall.recording.metrics import Metrics
    from seawall.recording.trace import TraceRecorder
    from seawall.recording.usage import UsageTracker
    from seawall.registry.announcements import (
        DeclarationChanges,
        announce_declarations,
        declaration_changes,
        replay_declarations,
    )
    from seawall.registry.function import tool
    from seawall.registry.provider_names import Names
    from seawall.registry.registry import Registry
    from seawall.registry.wrapping import wrap
    from seawall.stores.memory_approvals import MemoryApprovals
    from seawall.stores.opening import open_state
    from seawall.stores.shared import Shared
    from seawall.stores.state import State

__version__ = "0.1.0"

_HOMES = {
    "contract.annotations": ("Annotations", "Risk"),
    "contract.approval": (
        "ApprovalBatch",
        "ApprovalConflict",
        "ApprovalNotFound",
        "ApprovalStatus",
    ),
    "contract.content": (
        "AudioContent",
        "Content",
        "EmbeddedResource",
        "ImageContent",
        "ResourceLink",
        "TextContent",
    ),
    "contract.decision": ("Action", "Decision", "PendingApproval", "Prepared"),
    "contract.errors": (
        "ConfigurationError",
        "Fault",
        "MissingExtra",
        "SealBroken",
        "StoreUnavailable",
    ),
    "contract.failure": ("Failure", "FailureCode", "Issue", "ToolFailed"),
    "contract.hook": ("Abort", "Defer", "Deny", "Replace", "Rewrite", "Stop"),
    "contract.optional_policies": (
        "AdaptiveLimitPolicy",
        "CachePolicy",
        "FallbackPolicy",
        "HedgePolicy",
        "RetryBudgetPolicy",
    ),
    "contract.policy": ("PRESETS", "BreakerPolicy", "RunPolicy"),
    "contract.result": ("ToolResult",),
    "contract.shortcut": ("Param", "Shortcut", "ShortcutStep"),
    "contract.span": ("Digest", "Outcome", "Span"),
    "contract.tool": ("Tool", "ToolCall"),
    "contract.turn": ("TurnEvent", "TurnOutcome", "TurnStatus"),
    "edges.adapters": (
        "to_fastmcp",
        "to_langchain",
        "to_mcp_server",
        "to_openai_agents",
        "to_pydantic_ai",
    ),
    "layers.environment": ("Environment",),
    "layers.risk_gate": ("Gate",),
    "layers.risk_policies": ("AllowlistPolicy", "RiskPolicy"),
    "layers.risk_questions": ("Answer",),
    "layers.risk_rules": ("ArgumentRule", "RuledPolicy"),
    "orchestration.approvals.desk": ("Approvals",),
    "orchestration.approvals.settings": ("ApprovalSettings",),
    "orchestration.batch": ("BatchRunner",),
    "orchestration.outcome": ("BatchOutcome",),
    "orchestration.hooks": ("Hook", "HookContext"),
    "orchestration.loop": ("LoopDetector",),
    "orchestration.loop_judge": ("LoopQuestion", "LoopVerdict"),
    "orchestration.loop_policy": ("LoopPolicy",),
    "orchestration.pipeline": ("Pipeline",),
    "orchestration.shortcut_store": ("ShortcutStore",),
    "orchestration.shortcuts": ("Shortcuts",),
    "pipeline.context": ("ToolContext",),
    "pipeline.invocation": ("Handler", "Invocation"),
    "pipeline.layer": ("Layer", "LayerContext", "LayerRecipe", "compose"),
    "pipeline.session": ("Permissions", "Services", "Session"),
    "policy.changes": ("Changes", "Family"),
    "policy.model": ("Policies",),
    "recording.metrics": ("Metrics",),
    "recording.trace": ("TraceRecorder",),
    "recording.usage": ("UsageTracker",),
    "registry.announcements": (
        "DeclarationChanges",
        "announce_declarations",
        "declaration_changes",
        "replay_declarations",
    ),
    "registry.function": ("tool",),
    "registry.provider_names": ("Names",),
    "registry.registry": ("Registry",),
    "registry.wrapping": ("wrap",),
    "stores.memory_approvals": ("MemoryApprovals",),
    "stores.opening": ("open_state",),
    "stores.state": ("State",),
    "stores.shared": ("Shared",),
}

_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "PRESETS",
    "Abort",
    "Action",
    "AdaptiveLimitPolicy",
    "AllowlistPolicy",
    "Annotations",
    "Answer",
    "ApprovalBatch",
    "ApprovalConflict",
    "ApprovalNotFound",
    "ApprovalSettings",
    "ApprovalStatus",
    "Approvals",
    "ArgumentRule",
    "AudioContent",
    "BatchOutcome",
    "BatchRunner",
    "BreakerPolicy",
    "CachePolicy",
    "Changes",
    "ConfigurationError",
    "Content",
    "Decision",
    "DeclarationChanges",
    "Defer",
    "Deny",
    "Digest",
    "EmbeddedResource",
    "Environment",
    "Failure",
    "FailureCode",
    "FallbackPolicy",
    "Family",
    "Fault",
    "Gate",
    "Handler",
    "HedgePolicy",
    "Hook",
    "HookContext",
    "ImageContent",
    "Invocation",
    "Issue",
    "Layer",
    "LayerContext",
    "LayerRecipe",
    "LoopDetector",
    "LoopPolicy",
    "LoopQuestion",
    "LoopVerdict",
    "MemoryApprovals",
    "Metrics",
    "MissingExtra",
    "Names",
    "Outcome",
    "Param",
    "PendingApproval",
    "Permissions",
    "Pipeline",
    "Policies",
    "Prepared",
    "Registry",
    "Replace",
    "ResourceLink",
    "RetryBudgetPolicy",
    "Rewrite",
    "Risk",
    "RiskPolicy",
    "RuledPolicy",
    "RunPolicy",
    "SealBroken",
    "Services",
    "Session",
    "Shared",
    "Shortcut",
    "ShortcutStep",
    "ShortcutStore",
    "Shortcuts",
    "Span",
    "State",
    "Stop",
    "StoreUnavailable",
    "TextContent",
    "Tool",
    "ToolCall",
    "ToolContext",
    "ToolFailed",
    "ToolResult",
    "TraceRecorder",
    "TurnEvent",
    "TurnOutcome",
    "TurnStatus",
    "UsageTracker",
    "__version__",
    "announce_declarations",
    "compose",
    "declaration_changes",
    "open_state",
    "replay_declarations",
    "to_fastmcp",
    "to_langchain",
    "to_mcp_server",
    "to_openai_agents",
    "to_pydantic_ai",
    "tool",
    "wrap",
]


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'seawall' has no attribute {name!r}")
    found = getattr(importlib.import_module(f"seawall.{home}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME_OF})

"""From policy files to policies, and from a tool and its policy to the chain that runs it."""

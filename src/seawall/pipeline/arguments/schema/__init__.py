"""The language of schemas: drafts, references, translations, and validators that are bounded."""

"""Coercion mode `careful`: mend what a person would read without doubt."""

"""What becomes of calls, approvals and effects while a database fails under load."""

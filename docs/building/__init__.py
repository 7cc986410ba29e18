"""What the site has beyond the pages, added while it is built; see `../conf.py`."""

"""Where archives lie: stores by name, what lies in them, and results put into them."""

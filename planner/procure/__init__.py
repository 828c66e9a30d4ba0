"""Bill of materials, power and money, with the user's own prices."""

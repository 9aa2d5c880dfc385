"""Files as users open them, cut from them, and list targets of them."""

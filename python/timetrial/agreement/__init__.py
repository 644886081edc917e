"""How closely two computations of the same thing must agree."""

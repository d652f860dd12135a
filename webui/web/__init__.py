"""The ground floor of the screens: what every app may use and what needs none of them."""

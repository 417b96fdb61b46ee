"""What is wrong on purpose: `managers` take one wrong decision, `misbehaving` targets break rules."""

"""What is wrong on purpose: `managers` take one wrong decision, `misbehaving` ones break rules."""

"""A network whose values are read by several layers, and whose layers read several values."""

FANNED = """
[[nodes]]
name = "conv1"
kind = "conv2d"
attributes = { channels = 4, kernel = 3, padding = "same" }

[[nodes]]
name = "relu1"
kind = "relu"

[[nodes]]
name = "sum1"
kind = "add"
inputs = ["relu1", "conv1"]

[[nodes]]
name = "both"
kind = "concat"
inputs = ["sum1", "relu1"]

[[nodes]]
name = "pool1"
kind = "max_pool2d"
attributes = { kernel = 2 }

[[nodes]]
name = "flat"
kind = "flatten"

[[nodes]]
name = "fc1"
kind = "dense"
attributes = { units = 12 }

[[nodes]]
name = "relu2"
kind = "relu"

[[nodes]]
name = "fc2"
kind = "dense"
inputs = ["flat"]
attributes = { units = 12 }

[[nodes]]
name = "sum2"
kind = "add"
inputs = ["fc2", "relu2", "fc1"]

[[nodes]]
name = "all"
kind = "concat"
inputs = ["sum2", "flat"]

[[nodes]]
name = "fc3"
kind = "dense"
attributes = { units = "classes" }

[[nodes]]
name = "loss"
kind = "softmax_cross_entropy"
inputs = ["fc3", "labels"]
"""

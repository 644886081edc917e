"""Networks of a user's own, as files: what the built-in ones lack."""

# Values that several layers read, and layers that read several values.
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

# Values that are dropped while the network learns: of an activation, and behind a flatten.
DROPPED = """
[[nodes]]
name = "conv1"
kind = "conv2d"
attributes = { channels = 4, kernel = 3 }

[[nodes]]
name = "relu1"
kind = "relu"

[[nodes]]
name = "drop1"
kind = "dropout"
attributes = { rate = 0.25 }

[[nodes]]
name = "pool1"
kind = "max_pool2d"
attributes = { kernel = 2 }

[[nodes]]
name = "flat"
kind = "flatten"

[[nodes]]
name = "drop2"
kind = "dropout"

[[nodes]]
name = "fc1"
kind = "dense"
attributes = { units = "classes" }

[[nodes]]
name = "loss"
kind = "softmax_cross_entropy"
inputs = ["fc1", "labels"]
"""

# Two losses: the code of an image is both its class and what it is drawn from again.
TWO_LOSSES = """
[[nodes]]
name = "conv1"
kind = "conv2d"
attributes = { channels = 4, kernel = 3 }

[[nodes]]
name = "relu1"
kind = "relu"

[[nodes]]
name = "flat"
kind = "flatten"

[[nodes]]
name = "code"
kind = "dense"
attributes = { units = "classes" }

[[nodes]]
name = "relu2"
kind = "relu"

[[nodes]]
name = "again"
kind = "dense"
attributes = { units = 784 }

[[nodes]]
name = "class"
kind = "softmax_cross_entropy"
inputs = ["code", "labels"]

[[nodes]]
name = "error"
kind = "mean_squared_error"
inputs = ["again", "images"]

[[nodes]]
name = "loss"
kind = "loss_sum"
inputs = ["class", "error"]
attributes = { weights = [1, 3] }
"""

# Layers that look at the whole batch and keep states, and the kinds that stand beside them.
NORMALIZED = """
[[nodes]]
name = "conv1"
kind = "conv2d"
attributes = { channels = 4, kernel = 5, stride = 2, bias = false }

[[nodes]]
name = "norm1"
kind = "batch_norm"

[[nodes]]
name = "relu1"
kind = "relu6"

[[nodes]]
name = "lrn"
kind = "local_response_norm"
attributes = { size = 3, alpha = 0.3, k = 2 }

[[nodes]]
name = "pool1"
kind = "max_pool2d"
attributes = { kernel = 2 }

[[nodes]]
name = "conv2"
kind = "conv2d"
attributes = { channels = 8, kernel = 3, bias = false }

[[nodes]]
name = "norm2"
kind = "batch_norm"
attributes = { epsilon = 1e-3, momentum = 0.2 }

[[nodes]]
name = "relu2"
kind = "leaky_relu"
attributes = { slope = 0.2 }

[[nodes]]
name = "pool2"
kind = "global_avg_pool2d"

[[nodes]]
name = "fc1"
kind = "dense"
attributes = { units = 12, bias = false }

[[nodes]]
name = "norm3"
kind = "batch_norm"

[[nodes]]
name = "fc2"
kind = "dense"
attributes = { units = "classes" }

[[nodes]]
name = "loss"
kind = "softmax_cross_entropy"
inputs = ["fc2", "labels"]
"""

"""Small networks of those kinds and attributes that not every framework has, one for each."""

# Batches that bring themselves to one scale. No bias stands before them: it would change nothing, and its
# gradient would be rounding alone.
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
kind = "relu"

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
attributes = { epsilon = 1e-3, momentum = 0.05 }

[[nodes]]
name = "relu2"
kind = "relu"

[[nodes]]
name = "flat"
kind = "flatten"

[[nodes]]
name = "fc1"
kind = "dense"
attributes = { units = "classes" }

[[nodes]]
name = "loss"
kind = "softmax_cross_entropy"
inputs = ["fc1", "labels"]
"""

# The same of flat values, which were images before.
NORMALIZED_FLAT = """
[[nodes]]
name = "conv1"
kind = "conv2d"
attributes = { channels = 4, kernel = 5, stride = 4, bias = false }

[[nodes]]
name = "tanh0"
kind = "tanh"

[[nodes]]
name = "flat"
kind = "flatten"

[[nodes]]
name = "norm1"
kind = "batch_norm"

[[nodes]]
name = "tanh1"
kind = "tanh"

[[nodes]]
name = "fc1"
kind = "dense"
attributes = { units = "classes" }

[[nodes]]
name = "loss"
kind = "softmax_cross_entropy"
inputs = ["fc1", "labels"]
"""

# Both forms of alpha, with numbers that show.
RESPONDING = """
[[nodes]]
name = "conv1"
kind = "conv2d"
attributes = { channels = 6, kernel = 5, stride = 2 }

[[nodes]]
name = "response1"
kind = "local_response_norm"
attributes = { size = 5, alpha = 0.7, beta = 0.75, k = 2.0 }

[[nodes]]
name = "pool1"
kind = "max_pool2d"
attributes = { kernel = 3 }

[[nodes]]
name = "response2"
kind = "local_response_norm"
attributes = { size = 3, alpha = 0.4, beta = 0.6, alpha_over_size = false }

[[nodes]]
name = "flat"
kind = "flatten"

[[nodes]]
name = "fc1"
kind = "dense"
attributes = { units = "classes" }

[[nodes]]
name = "loss"
kind = "softmax_cross_entropy"
inputs = ["fc1", "labels"]
"""

# Other bends than that of relu, and a mean of whole images.
BENT = """
[[nodes]]
name = "conv1"
kind = "conv2d"
attributes = { channels = 6, kernel = 5, stride = 4, bias = false }

[[nodes]]
name = "bent1"
kind = "leaky_relu"
attributes = { slope = 0.2 }

[[nodes]]
name = "conv2"
kind = "conv2d"
attributes = { channels = 8, kernel = 3, bias = false }

[[nodes]]
name = "mean"
kind = "global_avg_pool2d"

[[nodes]]
name = "bent2"
kind = "leaky_relu"

[[nodes]]
name = "fc1"
kind = "dense"
attributes = { units = 12 }

[[nodes]]
name = "bent3"
kind = "KIND"

[[nodes]]
name = "fc2"
kind = "dense"
attributes = { units = "classes" }

[[nodes]]
name = "loss"
kind = "softmax_cross_entropy"
inputs = ["fc2", "labels"]
"""
BENT, CUT = BENT.replace("KIND", "leaky_relu"), BENT.replace("KIND", "relu6")

# Convolutions in groups; the second has a kernel for each channel.
GROUPED = """
[[nodes]]
name = "conv1"
kind = "conv2d"
attributes = { channels = 6, kernel = 5, stride = 2 }

[[nodes]]
name = "conv2"
kind = "conv2d"
attributes = { channels = 12, kernel = 3, groups = 6, padding = 1, bias = false }

[[nodes]]
name = "relu2"
kind = "relu"

[[nodes]]
name = "conv3"
kind = "conv2d"
attributes = { channels = 8, kernel = [3, 2], stride = 2, groups = 2 }

[[nodes]]
name = "flat"
kind = "flatten"

[[nodes]]
name = "fc1"
kind = "dense"
attributes = { units = "classes" }

[[nodes]]
name = "loss"
kind = "softmax_cross_entropy"
inputs = ["fc1", "labels"]
"""

# "same" with a stride and an even kernel: one more is padded at the end than at the beginning.
UNEVEN = """
[[nodes]]
name = "conv1"
kind = "conv2d"
attributes = { channels = 4, kernel = 3, stride = 2, padding = "same" }

[[nodes]]
name = "relu1"
kind = "relu"

[[nodes]]
name = "conv2"
kind = "conv2d"
attributes = { channels = 6, kernel = [4, 3], stride = [1, 3], padding = "same", bias = false }

[[nodes]]
name = "flat"
kind = "flatten"

[[nodes]]
name = "fc1"
kind = "dense"
attributes = { units = "classes" }

[[nodes]]
name = "loss"
kind = "softmax_cross_entropy"
inputs = ["fc1", "labels"]
"""

DILATED = """
[[nodes]]
name = "conv1"
kind = "conv2d"
attributes = { channels = 4, kernel = 3, dilation = [2, 3], padding = [1, 2] }

[[nodes]]
name = "pool1"
kind = "max_pool2d"
attributes = { kernel = 2 }

[[nodes]]
name = "conv2"
kind = "conv2d"
attributes = { channels = 6, kernel = 3, dilation = 2, padding = "same", bias = false }

[[nodes]]
name = "flat"
kind = "flatten"

[[nodes]]
name = "fc1"
kind = "dense"
attributes = { units = "classes" }

[[nodes]]
name = "loss"
kind = "softmax_cross_entropy"
inputs = ["fc1", "labels"]
"""

# From small images to larger ones.
DECODED = """
[[nodes]]
name = "conv1"
kind = "conv2d"
attributes = { channels = 4, kernel = 4, stride = 4 }

[[nodes]]
name = "relu1"
kind = "relu"

[[nodes]]
name = "larger1"
kind = "conv_transpose2d"
attributes = { channels = 5, kernel = [3, 4], stride = [2, 1], padding = [1, 0]OUTPUT_PADDING }

[[nodes]]
name = "relu2"
kind = "relu"

[[nodes]]
name = "larger2"
kind = "conv_transpose2d"
attributes = { channels = 3, kernel = 2, stride = 3, bias = false }

[[nodes]]
name = "flat"
kind = "flatten"

[[nodes]]
name = "fc1"
kind = "dense"
attributes = { units = "classes" }

[[nodes]]
name = "loss"
kind = "softmax_cross_entropy"
inputs = ["fc1", "labels"]
"""
DECODED, DECODED_AND_PADDED = (
    DECODED.replace("OUTPUT_PADDING", more) for more in ("", ", output_padding = [1, 0]")
)

ENLARGED = """
[[nodes]]
name = "conv1"
kind = "conv2d"
attributes = { channels = 4, kernel = 4, stride = 4 }

[[nodes]]
name = "larger1"
kind = "upsample2d"
attributes = { scale = 2 }

[[nodes]]
name = "conv2"
kind = "conv2d"
attributes = { channels = 4, kernel = 3, stride = 2 }

[[nodes]]
name = "larger2"
kind = "upsample2d"
attributes = { scale = [3, 2] }

[[nodes]]
name = "flat"
kind = "flatten"

[[nodes]]
name = "fc1"
kind = "dense"
attributes = { units = "classes" }

[[nodes]]
name = "loss"
kind = "softmax_cross_entropy"
inputs = ["fc1", "labels"]
"""

# All of them behind each other.
TOGETHER = """
[[nodes]]
name = "conv1"
kind = "conv2d"
attributes = { channels = 6, kernel = 3, stride = 2, padding = "same", bias = false }

[[nodes]]
name = "norm1"
kind = "batch_norm"

[[nodes]]
name = "relu1"
kind = "relu6"

[[nodes]]
name = "conv2"
kind = "conv2d"
attributes = { channels = 6, kernel = 3, groups = 6 }

[[nodes]]
name = "conv3"
kind = "conv2d"
attributes = { channels = 8, kernel = 3, groups = 2, dilation = [2, 1], stride = 2 }

[[nodes]]
name = "relu3"
kind = "leaky_relu"

[[nodes]]
name = "response"
kind = "local_response_norm"
attributes = { size = 3, alpha = 0.4, alpha_over_size = false }

[[nodes]]
name = "larger4"
kind = "conv_transpose2d"
attributes = { channels = 5, kernel = 3, stride = 2, padding = 1, output_padding = 1 }

[[nodes]]
name = "larger5"
kind = "upsample2d"
attributes = { scale = [1, 2] }

[[nodes]]
name = "conv6"
kind = "conv2d"
attributes = { channels = 8, kernel = 3, stride = 2, bias = false }

[[nodes]]
name = "mean"
kind = "global_avg_pool2d"

[[nodes]]
name = "fc1"
kind = "dense"
attributes = { units = "classes" }

[[nodes]]
name = "loss"
kind = "softmax_cross_entropy"
inputs = ["fc1", "labels"]
"""

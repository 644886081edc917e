// Pooling: each channel of each image by itself.
#include "network/kinds/kinds.h"

#include "network/kinds/shared.h"

namespace timetrial::kinds {
namespace {

Shape infer_pool2d(const LayerView& layer) {
    for (const char* axis : {"_h", "_w"})
        if (2 * layer.node.whole(std::string("padding") + axis) >
            layer.node.whole(std::string("kernel") + axis))
            layer.refuse(
                "has a padding of more than half its kernel: some windows would see nothing but padding");
    need_images(layer);
    const auto output = slide(layer);
    return {layer.input_shape()[0], layer.input_shape()[1], output[0], output[1]};
}

Shape infer_global_pool2d(const LayerView& layer) {
    need_images(layer);
    return {layer.input_shape()[0], layer.input_shape()[1]};
}

}  // namespace

std::vector<LayerKind> pooling() {
    using enum BackwardReads;
    const std::vector<AttributeRule> window{pair("kernel", 1), pair_as("stride", 1, "kernel"),
                                            pair("padding", 0, 0.0)};
    return {
        {.name = "max_pool2d",
         .backward_reads = kInput,
         .attributes = window,
         .infer_shape = infer_pool2d,
         .formula =
             "the largest value in the window; padding never wins, the first of equals has the gradient",
         .source = kVision,
         .picks_largest = true},
        {.name = "avg_pool2d",
         .attributes = window,
         .infer_shape = infer_pool2d,
         .formula = "the mean of the window; padded zeros count",
         .source = kVision},
        {.name = "global_avg_pool2d",
         .infer_shape = infer_global_pool2d,
         .formula = "the mean over `H` and `W`: `(N, C, H, W)` becomes `(N, C)`",
         .source = "Lin, Chen and Yan, Network in network, ICLR 2014"},
    };
}

}  // namespace timetrial::kinds

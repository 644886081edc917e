// What moves values, and joins them.
#include "network/kinds/kinds.h"

#include "network/kinds/shared.h"
#include "text/text.h"

namespace timetrial::kinds {
namespace {

Shape infer_flatten(const LayerView& layer) {
    const Shape& input = layer.input_shape();
    if (input.size() < 2) layer.refuse("needs samples of at least one extent; " + gives(layer));
    return {input[0], element_count(input) / input[0]};
}

Shape infer_map_to_sequence(const LayerView& layer) {
    need_images(layer);
    const Shape& input = layer.input_shape();
    return {input[0], input[2], input[1] * input[3]};
}

Shape infer_upsample2d(const LayerView& layer) {
    need_images(layer);
    const Shape& input = layer.input_shape();
    return {input[0], input[1], input[2] * layer.node.whole("scale_h"),
            input[3] * layer.node.whole("scale_w")};
}

Shape infer_add(const LayerView& layer) {
    for (const Node* input : layer.inputs)
        if (input->shape != layer.input_shape())
            layer.refuse("needs inputs of one shape; " + all_give(layer));
    return layer.input_shape();
}

Shape infer_concat(const LayerView& layer) {
    Shape joined = layer.input_shape();
    joined[1] = 0;
    for (const Node* input : layer.inputs) {
        Shape expected = layer.input_shape();
        if (input->shape.size() == expected.size()) expected[1] = input->shape[1];
        if (input->shape != expected)
            layer.refuse("needs inputs that differ in nothing but their channels (axis 1); " +
                         all_give(layer));
        joined[1] += input->shape[1];
    }
    return joined;
}

}  // namespace

std::vector<LayerKind> shapes() {
    using enum Takes;
    return {
        {.name = "flatten",
         .infer_shape = infer_flatten,
         .formula = "`(N, C, H, W)` as `(N, C H W)`",
         .source = "row-major, as in the shapes of this table",
         .moves_nothing = true,
         .keeps_places = true},
        {.name = "map_to_sequence",
         .infer_shape = infer_map_to_sequence,
         .formula =
             "`(N, C, H, W)` as the sequence `(N, H, C W)`, `y[n,t,c W + w] = x[n,c,t,w]`: the rows of all "
             "maps are its steps, from top to bottom",
         .source = "Shi, Bai and Yao, TPAMI 39, 2017, whose steps are the columns"},
        {.name = "upsample2d",
         .attributes = {pair("scale", 1)},
         .infer_shape = infer_upsample2d,
         .formula = "`y[n,c,i,j] = x[n,c,i/s,j/s]`, rounded down: the nearest value. Its gradient is the sum "
                    "over its copies",
         .source = "Odena, Dumoulin and Olah, Deconvolution and Checkerboard Artifacts, Distill 2016"},
        {.name = "add",
         .takes = kSeveral,
         .infer_shape = infer_add,
         .formula = "`y = x1 + x2 + ...`: two or more inputs of one shape. Each has the gradient of `y`",
         .source = "He, Zhang, Ren and Sun, CVPR 2016"},
        {.name = "concat",
         .takes = kSeveral,
         .infer_shape = infer_concat,
         .formula = "the inputs one behind the other along axis 1: the channels of `(N, C, H, W)`, the "
                    "features of `(N, F)`. Two or more inputs that are alike in the rest; each has its own "
                    "part of the gradient of `y`",
         .source = "Huang, Liu, van der Maaten and Weinberger, CVPR 2017"},
    };
}

}  // namespace timetrial::kinds

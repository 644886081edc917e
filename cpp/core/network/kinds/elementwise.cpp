// What treats each value alone.
#include "network/kinds/kinds.h"

#include "network/kinds/shared.h"
#include "text/text.h"

namespace timetrial::kinds {
namespace {

Shape infer_dropout(const LayerView& layer) {
    const double rate = std::get<double>(layer.node.attribute("rate"));
    if (rate >= 1)
        layer.refuse("has rate = " + number_text(rate) +
                     "; expected the share of values that are dropped, from 0 to below 1");
    return layer.input_shape();
}

}  // namespace

std::vector<LayerKind> elementwise() {
    using enum BackwardReads;
    return {
        {.name = "relu",
         .backward_reads = kOutput,
         .formula = "`y = max(x, 0)`, with derivative 0 at 0",
         .source = "Nair and Hinton, ICML 2010",
         .kinks = {0.0},
         .keeps_places = true},
        {.name = "leaky_relu",
         .backward_reads = kInput,
         .attributes = {share("slope", 0.01)},
         .formula = "`y = x` above 0, `slope x` below, with derivative `slope` at 0",
         .source = "Maas, Hannun and Ng, ICML 2013",
         .kinks = {0.0},
         .keeps_places = true},
        {.name = "relu6",
         .backward_reads = kOutput,
         .formula = "`y = min(max(x, 0), 6)`, with derivative 0 at 0 and at 6",
         .source = "Krizhevsky, Convolutional deep belief networks on CIFAR-10, 2010",
         .kinks = {0.0, 6.0},
         .keeps_places = true},
        {.name = "tanh",
         .backward_reads = kOutput,
         .formula = "`y = tanh(x)`",
         .source = kBook,
         .keeps_places = true},
        {.name = "sigmoid",
         .backward_reads = kOutput,
         .formula = "`y = 1 / (1 + exp(-x))`",
         .source = kBook,
         .keeps_places = true},
        {.name = "dropout",
         .backward_reads = kMask,
         .attributes = {share("rate", 0.5)},
         .infer_shape = infer_dropout,
         .formula = "`y = m x` while it learns, where the batch brings `m`: 0 for a share `rate` of the "
                    "values, drawn anew for each step, and `1 / (1 - rate)` for the others; `y = x` in "
                    "inference",
         .source = "Srivastava, Hinton, Krizhevsky, Sutskever and Salakhutdinov, JMLR 15, 2014; scaled while "
                   "it learns, as every framework does today",
         .keeps_places = true,
         .mask_rate = "rate"},
    };
}

}  // namespace timetrial::kinds

"""Loss and gradients of a Keras 3 model without an update, in the words of its backend."""


def function(backend, keras, model):
    """(images or a list of them and masks, labels) -> (loss, gradients in the order of
    model.trainable_variables)."""
    return {"tensorflow": _tensorflow, "jax": _jax, "torch": _torch}[backend](keras, model)


def _tensorflow(keras, model):
    import tensorflow as tf

    variables = [variable.value for variable in model.trainable_variables]

    @tf.function
    def differentiate(images, labels):
        with tf.GradientTape() as tape:
            loss = model.compute_loss(images, labels, model(images, training=True))
        return loss, tape.gradient(loss, variables)

    def find(images, labels):
        return differentiate(
            tf.nest.map_structure(tf.convert_to_tensor, images), tf.convert_to_tensor(labels)
        )

    return find


def _jax(keras, model):
    import jax

    def loss_of(trainable, others, images, labels):
        prediction, others = model.stateless_call(trainable, others, images, training=True)
        return model.compute_loss(images, labels, prediction), others

    differentiate = jax.jit(jax.value_and_grad(loss_of, has_aux=True))

    def find(images, labels):
        trainable = [variable.value for variable in model.trainable_variables]
        others = [variable.value for variable in model.non_trainable_variables]
        (loss, others), found = jax.block_until_ready(differentiate(trainable, others, images, labels))
        for variable, value in zip(model.non_trainable_variables, others):
            variable.assign(value)
        return loss, found

    return find


def _torch(keras, model):
    def find(images, labels):
        model.zero_grad()
        images = keras.tree.map_structure(keras.ops.convert_to_tensor, images)
        labels = keras.ops.convert_to_tensor(labels)
        loss = model.compute_loss(images, labels, model(images, training=True))
        loss.backward()
        return loss.detach(), [variable.value.grad for variable in model.trainable_variables]

    return find

declare global {
  // Programs compile without the types of the DOM and of newer libraries: these are merged with them, if there are any.
  interface SymbolConstructor {
    readonly dispose: unique symbol;
  }
  interface TransformStream<I = any, O = any> {}
}

export {};

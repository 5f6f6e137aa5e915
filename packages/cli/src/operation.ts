/** The kind of value that the text of an option becomes in the request. */
export type ArgumentType = 'text' | 'number' | 'boolean' | 'json'

/** A parameter of an operation, as an argument of its command. */
export interface OperationArgument {
  readonly name: string
  readonly in: 'path' | 'query' | 'body'
  readonly type: ArgumentType
  readonly required: boolean
  readonly about: string
}

/** An operation of the interface, as the command line needs it. Generated from openapi.json. */
export interface ApiOperation {
  /** The words of the command: the id of the operation in kebab case, with spaces for the dots. */
  readonly name: string
  readonly summary: string
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  readonly path: `/${string}`
  /** Whether it is a list in pages. */
  readonly isList: boolean
  readonly takesIdempotencyKey: boolean
  readonly arguments: readonly OperationArgument[]
}

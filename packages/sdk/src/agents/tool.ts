/** A tool for a model, in the terms that agent frameworks share. */
export interface AgentTool {
  readonly name: string
  /** Describes the tool and when to use it, for the model. */
  readonly description: string
  /** A JSON schema of the arguments. */
  readonly inputSchema: ToolInputSchema
  /**
   * Runs the tool with the arguments of a model, which it checks itself. Returns JSON text of bounded length, also for
   * arguments that are wrong and for payments that are refused. Throws only when `signal` aborts.
   */
  readonly execute: (input: unknown, options?: ExecuteOptions) => Promise<string>
}

export interface ExecuteOptions {
  readonly signal?: AbortSignal | undefined
}

/** The subset of JSON schema that all frameworks and models accept. */
export interface ToolInputSchema {
  readonly type: 'object'
  readonly properties: Record<string, ToolArgument>
  readonly required: string[]
  readonly additionalProperties: true
}

/** One argument of a tool. */
export interface ToolArgument {
  readonly type: 'string' | 'integer' | 'object'
  readonly description: string
  readonly enum?: string[]
  readonly additionalProperties?: { readonly type: 'string' }
}

/** The arguments of a model are wrong: nothing was done. */
export class ArgumentError extends Error {}

/** The arguments by name. Some frameworks pass undefined for none. */
export function argumentsOf(input: unknown): Readonly<Record<string, unknown>> {
  if (input === undefined || input === null) return {}
  if (typeof input !== 'object' || Array.isArray(input)) throw new ArgumentError('Give the arguments as an object.')
  return { ...input }
}

/** An argument that is text, or left out. Models send null or an empty text for what they leave out. */
export function textOf(value: unknown, name: string, lengthMax: number): string | undefined {
  if (value === undefined || value === null || value === '') return undefined
  if (typeof value !== 'string') throw new ArgumentError(`${name} must be text.`)
  if (value.length > lengthMax) throw new ArgumentError(`${name} is longer than ${lengthMax} characters.`)
  return value
}

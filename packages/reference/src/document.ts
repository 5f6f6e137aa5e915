/** The parts of the service's `openapi.json` that the page reads. */
export interface ApiDocument {
  readonly info: Readonly<Record<string, unknown>>
  readonly servers: readonly { readonly url: string }[]
  readonly tags: readonly { readonly name: string }[]
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  /** The header fields of success responses, and the errors, of every operation with a method. */
  readonly 'x-every-operation': Readonly<Record<string, Pick<Operation, 'x-problems'> & Pick<MediaTypes, 'headers'>>>
  readonly webhooks: Readonly<Record<string, { readonly $ref?: string; readonly post: object }>>
  readonly components: {
    readonly examples: Readonly<Record<string, Example>>
    readonly parameters: Readonly<Record<string, Parameter>>
    readonly pathItems: Readonly<Record<string, { readonly parameters: readonly Reference[] }>>
    readonly responses: Readonly<Record<string, MediaTypes>>
    readonly schemas: Readonly<Record<string, Schema>>
    readonly 'x-problems': Readonly<Record<string, Refused>>
  }
}

export interface Operation {
  readonly operationId: string
  readonly summary: string
  readonly tags: readonly string[]
  readonly parameters?: readonly (Parameter | Reference)[]
  readonly requestBody?: MediaTypes
  readonly responses: Readonly<Record<string, MediaTypes | Reference>>
  readonly 'x-problems'?: readonly string[]
}

export interface MediaTypes {
  readonly description?: string
  readonly content?: Readonly<Record<string, MediaType>>
  readonly headers?: Readonly<Record<string, unknown>>
}

export interface Refused {
  readonly title: string
  readonly status: number
}

export interface Parameter {
  readonly name: string
  readonly in: string
  readonly required?: boolean
  readonly schema: Schema | Reference
}

interface MediaType {
  readonly schema?: Schema | Reference
  readonly examples?: Readonly<Record<string, Example | Reference>>
}

interface Example {
  readonly value: unknown
}

interface Schema {
  readonly type?: unknown
  readonly example?: unknown
  readonly default?: unknown
  readonly enum?: readonly unknown[]
  readonly format?: string
}

interface Reference {
  readonly $ref: string
}

/** Follows a reference to one of the components, which are named by their last part. */
export function resolved<T extends object>(
  components: Readonly<Record<string, T>>,
  value: T | Reference,
): T | undefined {
  if (!('$ref' in value)) return value
  const name = String(value.$ref).split('/').at(-1)
  return name === undefined ? undefined : components[name]
}

/** The part of an address that names an operation: its id, as in the reference without scripts. */
export function slugOfOperation({ path, method, operationId }: Readonly<Record<string, string | undefined>>): string {
  return operationId ?? `${method}${path}`
}

/** By the anchor of the reference without scripts, the anchor of the operation or tag on this page. */
export function anchorsOf({ paths }: ApiDocument): ReadonlyMap<string, string> {
  const operations = Object.values(paths).flatMap((methods) => Object.values(methods))
  return new Map(
    operations.flatMap(({ operationId, tags: [tag = ''] }) => [
      [operationId, `tag/${tag}/${operationId}`] as const,
      [tag, `tag/${tag}`] as const,
    ]),
  )
}

/** The body that was recorded as the example of a request; undefined without one. */
export function recordedBody({ components }: ApiDocument, { requestBody }: Operation): unknown {
  const [recorded] = Object.values(requestBody?.content?.['application/json']?.examples ?? {})
  return recorded === undefined ? undefined : resolved(components.examples, recorded)?.value
}

/** What the page reads of the service's `openapi.json`. */
export interface ApiDocument {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly webhooks?: Readonly<Record<string, unknown>>
  readonly components: {
    readonly parameters: Readonly<Record<string, Parameter>>
    readonly schemas: Readonly<Record<string, Schema>>
  }
}

export interface Operation {
  readonly operationId: string
  readonly tags: readonly string[]
  readonly parameters?: readonly (Parameter | Reference)[]
  readonly requestBody?: { readonly content: Readonly<Record<string, MediaType>> }
  readonly responses: Readonly<Record<string, { readonly content?: Readonly<Record<string, MediaType>> } | Reference>>
}

export interface Parameter {
  readonly name: string
  readonly in: string
  readonly required?: boolean
  readonly schema: Schema | Reference
}

interface MediaType {
  readonly schema?: Schema | Reference
  readonly examples?: Readonly<Record<string, { readonly value: unknown }>>
}

export interface Schema {
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
export function resolved<T extends object>(components: Readonly<Record<string, T>>, value: T | Reference): T | undefined {
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

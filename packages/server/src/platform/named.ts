import { z } from 'zod'

/**
 * Gives schemas the names of their components in openapi.json: the keys of `schemas`. A schema without a name is written out wherever it
 * is used. Two schemas with one name make the document fail.
 */
export function named(schemas: Readonly<Record<string, z.ZodType>>): void {
  for (const [id, schema] of Object.entries(schemas))
    z.globalRegistry.add(schema, { ...z.globalRegistry.get(schema), id })
}

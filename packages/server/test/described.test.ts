import { expect, test } from 'vitest'
import document from '../../../openapi.json' with { type: 'json' }
import { memberOf } from './declared.ts'

interface Described {
  readonly operationId: string
  readonly description?: string
  readonly parameters?: readonly object[]
}

const operations = Object.values(document.paths).flatMap((methods) => Object.values<Described>(methods))

/** A sentence or several: a capital or a code first, a period last. */
const sentence = /^(?:[A-Z0-9-]|`[^`]+`)[\s\S]*\.$/

test('every operation has a description of one to a few sentences beside its summary', () => {
  const missing = operations.filter(({ description }) => !sentence.test(description ?? ''))
  expect(missing.map(({ operationId }) => operationId)).toEqual([])
})

test('every parameter has a description', () => {
  const missing = operations.flatMap(({ operationId, parameters = [] }) =>
    parameters.flatMap((parameter) => {
      const { name, description } = Object(resolved(parameter))
      return sentence.test(description ?? '') ? [] : [`${operationId}: ${name}`]
    }),
  )
  expect(missing).toEqual([])
})

test('every field of a request, a response and a delivery has a description', () => {
  expect(undescribedIn(document, '')).toEqual([])
})

/** Places of the members of schemas in this part of the document that nothing describes. */
function undescribedIn(part: unknown, place: string): string[] {
  if (Array.isArray(part)) return part.flatMap((inner) => undescribedIn(inner, place))
  if (typeof part !== 'object' || part === null) return []
  const isSchema = memberOf(part, 'type') === 'object'
  const own = isSchema ? Object.entries(Object(memberOf(part, 'properties'))) : []
  const missing = own.filter(([, field]) => !sentence.test(Object(resolved(field)).description ?? ''))
  const inner = Object.entries(part).filter(([name]) => !/^(examples?|default)$/.test(name) || !isSchema)
  return [
    ...missing.map(([name]) => `${place}.${name}`),
    ...inner.flatMap(([name, value]) => undescribedIn(value, `${place}/${name}`)),
  ]
}

/** What this refers to, with the members beside the reference. */
function resolved(value: unknown): unknown {
  const reference = memberOf(value, '$ref')
  if (typeof reference !== 'string') return value
  const named = memberOf(document, ...reference.slice('#/'.length).split('/'))
  return { ...Object(named), ...Object(value) }
}

import { expect, test } from 'vitest'
import { withoutReferences } from './json-references.ts'

const root = {
  parts: {
    Name: { type: 'string', description: 'A name.' },
    Person: { properties: { name: { $ref: '#/parts/Name', description: 'The full name.' } } },
    'a/b~c': { const: 1 },
  },
}

test('a reference becomes what it names, at every depth, and members beside it win', () => {
  expect(withoutReferences({ items: [{ $ref: '#/parts/Person' }] }, root)).toEqual({
    items: [{ properties: { name: { type: 'string', description: 'The full name.' } } }],
  })
})

test('names are read as JSON Pointers in a URI fragment', () => {
  expect(withoutReferences({ $ref: '#/parts/a~1b~0c' }, root)).toEqual({ const: 1 })
  expect(withoutReferences({ $ref: '#/parts/a%7E1b~0c' }, root)).toEqual({ const: 1 })
})

test('references that are not meant stay as they are', () => {
  const value = { one: { $ref: '#/parts/Name' }, other: { $ref: '#/other/Name' } }
  expect(withoutReferences(value, root, (reference) => reference.startsWith('#/parts/'))).toEqual({
    one: root.parts.Name,
    other: { $ref: '#/other/Name' },
  })
})

test('a reference to nothing is an error that names it', () => {
  expect(() => withoutReferences({ $ref: '#/parts/Nobody' }, root)).toThrow('#/parts/Nobody')
})

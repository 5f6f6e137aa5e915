import { expect, test } from 'vitest'
import { withExtensions } from './component-schemas.ts'

const text = { type: 'string' }
const base = { type: 'object', properties: { a: text, b: text, c: text }, required: ['a', 'b'] }
const more = { ...base, properties: { ...base.properties, d: text }, required: ['a', 'b', 'd'], description: 'More.' }

test('a response with all members of another one extends it', () => {
  expect(withExtensions({ Base: base, More: more })).toEqual({
    Base: base,
    More: {
      description: 'More.',
      allOf: [{ $ref: '#/components/schemas/Base' }, { type: 'object', properties: { d: text }, required: ['d'] }],
    },
  })
})

test('the largest of several is extended, which itself may extend another', () => {
  const most = { ...more, properties: { ...more.properties, e: text } }
  const { Most, More } = Object(withExtensions({ Base: base, More: more, Most: most }))
  expect([Most.allOf[0].$ref, More.allOf[0].$ref]).toEqual(['#/components/schemas/More', '#/components/schemas/Base'])
})

test.each([
  ['a request, which allows no further member', { ...more, additionalProperties: false }],
  ['a member with another schema', { ...more, properties: { ...more.properties, a: { type: 'integer' } } }],
  ['a member that is optional in it', { ...more, required: ['a', 'd'] }],
  ['no further member', { ...base, required: ['a', 'b', 'c'] }],
])('nothing is extended by %s', (_, schema) => {
  expect(withExtensions({ Base: base, Schema: schema })).toEqual({ Base: base, Schema: schema })
})

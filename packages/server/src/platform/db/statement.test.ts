import { expect, test } from 'vitest'
import { listed, type Sql, sql } from './statement.ts'

function both(left: Sql, value: unknown, right: Sql): Sql {
  return sql`select ${left}, ${value}, ${right}`
}

test('a template has the text and the values of the fragments that it is given, however often it is used', () => {
  for (let turn = 0; turn < 2; turn++)
    for (let count = 0; count < 40; count++) {
      const left = listed(Array.from({ length: (count % 20) + 1 }, (_, place) => sql`f(${place}, ${[place]})`))
      const right = count < 20 ? sql`now()` : sql`g(${turn})`
      const numbers = Array.from({ length: (count % 20) + 1 }, (_, place) => `f($${2 * place + 1}, $${2 * place + 2})`)
      const next = 2 * numbers.length + 1
      expect(both(left, 'here', right)).toEqual({
        text: `select ${numbers.join(', ')}, $${next}, ${count < 20 ? 'now()' : `g($${next + 1})`}`,
        values: [...numbers.flatMap((_, place) => [place, [place]]), 'here', ...(count < 20 ? [] : [turn])],
      })
    }
})

test('a value is never a fragment, also where the same template had one', () => {
  const one = (value: unknown) => sql`select ${value} as ${sql`name`}`
  expect(one(sql`1`).text).toBe('select 1 as name')
  expect(one('1').text).toBe('select $1 as name')
  expect(one({ text: '1', values: [] })).toMatchObject({
    text: 'select $1 as name',
    values: [{ text: '1', values: [] }],
  })
  expect(one(undefined).text).toBe('select $1 as name')
})

test('the second parameter of a fragment that is used twice keeps its place in each', () => {
  const pair = sql`(${1}, ${2})`
  expect(sql`${0} ${pair} ${pair}`).toMatchObject({ text: '$1 ($2, $3) ($4, $5)', values: [0, 1, 2, 1, 2] })
})

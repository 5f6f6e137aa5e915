import { parse } from 'csv-parse/sync'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { csvOf, prefersCsv } from './csv.ts'

const Row = z.strictObject({
  name: z.string().nullable(),
  count: z.int().nullable(),
  data: z.record(z.string(), z.unknown()),
})
type Row = z.output<typeof Row>

const row = (name: string | null, data: Row['data'] = {}): Row => ({ name, count: 1, data })
const read = (items: readonly Row[]): string[][] => parse(csvOf(Row, items), { record_delimiter: '\r\n' })
const nameOf = (name: string): string | undefined => read([row(name)])[1]?.[0]

test('every text and every JSON value is one cell, and a reader gets it back, but for apostrophes before a formula', () => {
  const text = fc.oneof(fc.string({ unit: 'binary' }), fc.stringMatching(/^[",;'\r\n\t =+@-]{0,8}a?$/))
  const items = fc.array(fc.tuple(text, fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 2 }))), { maxLength: 5 })
  fc.assert(
    fc.property(items, (given) => {
      const [columns, ...rows] = read(given.map(([name, data]) => row(name, data)))
      expect(columns).toEqual(['name', 'count', 'data'])
      expect(rows.length).toBe(given.length)
      for (const [at, [name, data]] of given.entries()) {
        const [shown = '', count, json = ''] = rows[at] ?? []
        expect(shown.replaceAll("'", '')).toBe(name.replaceAll("'", ''))
        expect([count, JSON.parse(json)]).toEqual(['1', JSON.parse(JSON.stringify(data))])
      }
    }),
    { numRuns: 40 },
  )
})

test('null is an empty cell, and an empty list has its row of names', () => {
  expect(csvOf(Row, [{ name: null, count: null, data: {} }])).toBe('name,count,data\r\n,,{}\r\n')
  expect(csvOf(Row, [])).toBe('name,count,data\r\n')
})

test.each(['=1+1', '+1+1', '-1+1', '-', '@SUM(A1)', '\t1', '\r1', '\n1', '＝1', '＋1', '－1', '＠A', '=1,"2"', '+1\n'])(
  'the cell %j is no formula in a spreadsheet',
  (text) => {
    expect(nameOf(text)).toBe(`'${text}`)
  },
)

test.each(['-1', '+1', '-0.000001', '+447700900123', '1e5', 'a=1', ' =1', '0x1', "'", "'=1"])(
  'the cell %j stays as it is',
  (text) => {
    expect(nameOf(text)).toBe(text)
  },
)

test('a run of many quotes takes time in proportion to its length', { timeout: 5_000 }, () => {
  const quotes = '"'.repeat(262_144)
  expect(nameOf(`a;${quotes}b`)).toBe(`a;${quotes}b`)
  expect(nameOf(`a;${quotes}=1`)).toBe(`a;${quotes}'=1`)
})

test('a number keeps every digit', () => {
  const digits = `-${'9'.repeat(40)}.${'1'.repeat(18)}`
  expect(nameOf(digits)).toBe(digits)
  expect(read([{ name: null, count: Number.MAX_SAFE_INTEGER, data: {} }])[1]?.[1]).toBe('9007199254740991')
})

test.each([
  'text/csv',
  'TEXT/CSV',
  'text/csv; charset=utf-8; header=present',
  'text/csv, */*;q=0.1',
  'text/csv, */*',
  '*/*, text/csv',
  'text/*',
  'text/csv, application/json',
  'text/csv;q=0.9, application/json;q=0.8',
  'application/json;q=0.5,text/csv;q=0.6',
  'application/json;q=0, text/csv;q=0.001',
  'application/*, text/csv',
])('a client that accepts %s gets CSV', (accept) => {
  expect(prefersCsv(accept)).toBe(true)
})

test.each([
  undefined,
  '',
  '*/*',
  'application/json',
  'application/json, text/csv',
  'application/json, text/*',
  'text/csv;q=0.5, application/json',
  'text/csv;q=0.5, */*',
  'text/csv;q=0',
  'text/csv;q=0, */*',
  'text/csv;q=0, text/*',
  'text/csv;q=much',
  'text/csv;q=-1',
  'text/csvx',
  'text/html, application/xhtml+xml, */*;q=0.8',
  'image/png',
  'text/csv application/json',
])('a client that accepts %s gets JSON', (accept) => {
  expect(prefersCsv(accept)).toBe(false)
})

test('no part of a cell is a formula where a spreadsheet separates cells at semicolons, tabs or lines', () => {
  const schema = z.object({ text: z.string(), data: z.record(z.string(), z.unknown()) })
  const data = { a: ';=1+1', b: [';@SUM(1)', 'x;y'] }
  for (const text of [
    'x;=1+1',
    ';=cmd|"/c calc"!A1',
    'a;b;-1+2',
    'a\t=1',
    'a\n=1',
    'a\r\n+1',
    'x;＝1',
    'x;"=1+1;',
    'a\n""@b',
    '\t"-1',
  ]) {
    const csv = csvOf(schema, [{ text, data }])
    // A spreadsheet drops quotes at the beginning of a cell.
    for (const part of csv.split(/[;\t\r\n]/)) expect([text, /^"*[=+\-@＝＋－＠]/.test(part)]).toEqual([text, false])
    const cell = /(\{.*\})"\r\n$/s.exec(csv)?.[1]?.replaceAll('""', '"') ?? ''
    expect(JSON.parse(cell)).toEqual(data)
  }
  expect(csvOf(schema, [{ text: 'a; b - c; 5', data: {} }])).toContain('a; b - c; 5')
})

import { Readable } from 'node:stream'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { boundary, type FormPart, formOf, formType } from '../../../../test/files/uploads.ts'
import { type FormFile, readForm } from './form.ts'

interface Read extends Omit<FormFile, 'content' | 'claimed'> {
  readonly bytes: Buffer
}

/** Reads a form that is cut into pieces of these sizes, repeated. */
function readIn(pieces: readonly number[], body: Uint8Array, contentType = formType): Promise<Read> {
  function* cut() {
    for (let from = 0, turn = 0; from < body.length; turn++) {
      const size = pieces[turn % pieces.length] ?? body.length
      yield Buffer.from(body.subarray(from, from + size))
      from += size
    }
  }
  const stream = Readable.from(cut(), { objectMode: false })
  return readForm({ headers: { 'content-type': contentType }, stream }, async ({ name, mimeType, content }) => {
    const chunks: Uint8Array[] = []
    for await (const chunk of content) chunks.push(chunk)
    return { name, mimeType, bytes: Buffer.concat(chunks) }
  })
}

/** Bytes that resemble the end of a part. */
const tricky = fc
  .array(
    fc.constantFrom(
      '\r\n',
      '--',
      '\r',
      '\n',
      '-',
      boundary,
      `--${boundary}`,
      `\r\n--${boundary.slice(0, -1)}`,
      '\0',
      'a',
    ),
    { maxLength: 12 },
  )
  .map((parts) => parts.join(''))
  .filter((content) => !`\r\n${content}`.includes(`\r\n--${boundary}`))

test('a file’s bytes are exactly those between the delimiters, however like one they look and however they are cut', async () => {
  const pieces = fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 5 })
  await fc.assert(
    fc.asyncProperty(tricky, pieces, async (content, sizes) => {
      const { bytes } = await readIn(sizes, formOf({ filename: 'a', content }))
      expect(bytes.toString('latin1')).toBe(content)
    }),
    { numRuns: 300 },
  )
})

test('any part of a form that is cut off is refused, wherever the cut is', async () => {
  const whole = formOf({ filename: 'a', content: 'a content' })
  // The last line break is not part of the form.
  for (let length = 0; length < whole.length - 2; length++) {
    const outcome = await readIn([7], whole.subarray(0, length)).catch(({ code }: { code: string }) => code)
    expect(outcome, String(length)).toBe('malformed-multipart')
  }
})

test.each([
  [`multipart/form-data; boundary="${boundary}"`],
  [`Multipart/Form-Data;charset=utf-8;boundary=${boundary}`],
  [`multipart/form-data; boundary=${boundary}; charset=utf-8`],
])('the boundary is read from "%s"', async (contentType) => {
  expect((await readIn([100], formOf({ filename: 'a', content: 'x' }), contentType)).name).toBe('a')
})

test('what is before and after the form is ignored', async () => {
  const body = Buffer.concat([
    Buffer.from('preamble\r\n'),
    formOf({ filename: 'a', content: 'x' }),
    Buffer.alloc(200_000),
  ])
  expect((await readIn([1_000], body)).bytes.toString()).toBe('x')
})

test.each<[string, FormPart, string]>([
  ['raw UTF-8', { filename: 'Zürich 東京.txt', content: '' }, 'Zürich 東京.txt'],
  ['percent-encoded quotes', { filename: 'a%22b.txt', content: '' }, 'a"b.txt'],
  ['a percent sign of its own', { filename: '50%25 of it%.txt', content: '' }, '50%25 of it%.txt'],
  ['bytes that are no UTF-8', { filename: '\u00ff', content: '' }, '\u00ff'],
])('a name in %s is read as browsers mean it', async (_, part, name) => {
  expect((await readIn([50], formOf(part))).name).toBe(name)
})

test('an error of the file’s consumer is the answer, and the consumer has ended by then', async () => {
  let ended = false
  const stream = Readable.from([Buffer.from(formOf({ filename: 'a', content: Buffer.alloc(500_000) }))], {
    objectMode: false,
  })
  const taking = readForm({ headers: { 'content-type': formType }, stream }, async ({ content }) => {
    try {
      for await (const chunk of content) if (chunk.length > 0) throw new Error('the disk is full')
    } finally {
      ended = true
    }
  })
  await expect(taking).rejects.toThrow('the disk is full')
  expect(ended).toBe(true)
})

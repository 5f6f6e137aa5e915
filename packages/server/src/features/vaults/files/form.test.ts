import { Readable } from 'node:stream'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { boundary, type FormPart, formOf, formType } from '../../../../test/files/uploads.ts'
import { processorMs } from '../../../../test/processor-time.ts'
import { attachmentOf, type FormFile, readFileName, readForm, readMimeType } from './form.ts'

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
  ['spaces before a line feed', `A:${' '.repeat(64_000)}\n`],
  ['tabs before a carriage return', `A:${'\t'.repeat(64_000)}\rb`],
  ['spaces before a colon', `A${' '.repeat(64_000)}b: c`],
  ['quotes', `Content-Type: ${'"'.repeat(64_000)}`],
])('a header field with thousands of %s is read in little time', async (_, field) => {
  const body = formOf({ filename: 'a', content: 'x', headers: [field] })
  expect(await processorMs(() => readIn([body.length], body).catch(() => undefined))).toBeLessThan(500)
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
    Buffer.alloc(50_000),
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

const long = 'ä'.repeat(255)

test.each([
  ['report.pdf', 'report.pdf'],
  ['/etc/passwd', 'passwd'],
  ['../../../etc/passwd', 'passwd'],
  ['C:\\Windows\\System32\\cmd.exe', 'cmd.exe'],
  ['a/b\\c.txt', 'c.txt'],
  [' spaced name.txt ', 'spaced name.txt'],
  ['Zürich 東京 \u{1f4c4}.txt', 'Zürich 東京 \u{1f4c4}.txt'],
  ['Zu\u0308rich', 'Zürich'],
  ['fdp.\u202eexe.txt', 'fdp.\u202eexe.txt'],
  ['half \ud800 pair', 'half \ufffd pair'],
  ['.hidden', '.hidden'],
  ['...', '...'],
  ['CON', 'CON'],
  ['"; rm -rf ~; echo ".txt', '"; rm -rf ~; echo ".txt'],
  [long, long],
  ['\u{1f4c4}'.repeat(255), '\u{1f4c4}'.repeat(255)],
])('a file sent as %j is called %j', (given, name) => {
  expect(readFileName(given)).toEqual({ name })
})

test.each([
  [undefined, 'is missing'],
  ['', 'is missing'],
  ['   ', 'is missing'],
  ['.', 'is missing'],
  ['..', 'is missing'],
  ['a/..', 'is missing'],
  ['directory/', 'is missing'],
  ['a\u0000.txt', 'holds control characters'],
  ['a\r\nSet-Cookie: b', 'holds control characters'],
  ['a\u0085b', 'holds control characters'],
  ['a\u007fb', 'holds control characters'],
  ['\u0000/a.txt', 'holds control characters'],
  [`${long}ä`, 'is longer than 255 characters'],
  ['x'.repeat(10_000), 'is longer than 255 characters'],
])('a file sent as %j is refused: its name %s', (given, fault) => {
  expect(readFileName(given)).toEqual({ fault })
})

test('a name of thousands of combining marks out of order is refused in little time', async () => {
  const marks = `a${'\u0300'.repeat(16_000)}${'\u0316'.repeat(16_000)}`
  expect(await processorMs(() => readFileName(marks))).toBeLessThan(100)
  expect(readFileName(marks)).toEqual({ fault: 'is longer than 255 characters' })
})

test('a name is counted after it is normalized', () => {
  // Three and four code points, and two of two code units each, become one.
  expect(readFileName('\u03b9\u0308\u0301'.repeat(255))).toEqual({ name: '\u0390'.repeat(255) })
  expect(readFileName('\u{11131}\u{11127}'.repeat(255))).toEqual({ name: '\u{1112e}'.repeat(255) })
  expect(readFileName('\u03b1\u0313\u0300\u0345'.repeat(255))).toEqual({ name: '\u1f82'.repeat(255) })
})

test('every accepted name becomes a header of one line of ASCII that encodes the same name', () => {
  for (const name of [
    'plain.txt',
    '"quoted" \\ %41.txt',
    'Zürich 東京 \u{1f4c4}.txt',
    '\u2764\ufe0f.png',
    "it's (1)*.txt",
    long,
  ]) {
    const header = attachmentOf(name)
    expect(header).toMatch(/^attachment; filename="[\x20-\x7e]*"; filename\*=UTF-8''[A-Za-z0-9%._~!-]*$/)
    expect(/filename="([^"\\]*)"/.exec(header)?.[1]).toBeDefined()
    expect(decodeURIComponent(header.split("UTF-8''")[1] ?? '')).toBe(name)
  }
})

test('the name that a browser saves has no bidirectional control characters', () => {
  const header = attachmentOf('a\u202eb\u2066c\u200fd\u061ce\u2069f.exe')
  expect(decodeURIComponent(header.split("UTF-8''")[1] ?? '')).toBe('abcdef.exe')
  expect(header).toContain('filename="abcdef.exe"')
})

test.each([
  ['text/plain', 'text/plain'],
  ['Text/HTML; charset=utf-8', 'text/html'],
  ['application/vnd.api+json', 'application/vnd.api+json'],
  [undefined, 'application/octet-stream'],
  ['', 'application/octet-stream'],
  ['text', 'application/octet-stream'],
  ['text/plain\r\nx: y', 'application/octet-stream'],
  [`${'a'.repeat(100)}/b`, 'application/octet-stream'],
  ['тип/текст', 'application/octet-stream'],
])('a part of type %j is a file of type %j', (given, type) => {
  expect(readMimeType(given)).toBe(type)
})

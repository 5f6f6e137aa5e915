import { readFileSync } from 'node:fs'
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { bundledList } from './bundled-list.ts'
import { listSha256 } from './lists.ts'
import { readList } from './read-list.ts'
import { ListRefused, type ReadList } from './sanctions-list.ts'

/** In the format of the official file; the parties are made up. */
const official = readFileSync(new URL('./sample-sdn-advanced.xml', import.meta.url), 'utf8')
const inOfficial = [
  '0x098b716b8aaf21512996dc57eb0615e2383e2f96',
  '0x8589427373d6d84e98730d7795d8f6f8731fda16',
  '0xd882cfc20f52f2599d84b8e8d58c7fb62cfe344b',
]

async function* piecesOf(...pieces: readonly (string | Uint8Array)[]): AsyncIterable<Uint8Array> {
  for (const piece of pieces) yield typeof piece === 'string' ? Buffer.from(piece) : piece
}

function read(...pieces: readonly (string | Uint8Array)[]): Promise<ReadList> {
  return readList(piecesOf(...pieces))
}

async function refusalOf(...pieces: readonly (string | Uint8Array)[]): Promise<string> {
  const error: unknown = await read(...pieces).catch((thrown: unknown) => thrown)
  if (!(error instanceof ListRefused)) throw new Error(`not refused: ${String(error)}`)
  return error.code
}

test('the bundled list has 156 sorted addresses in lower case that match its hash', () => {
  const { addresses, sha256 } = bundledList
  expect(addresses).toHaveLength(156)
  expect([...new Set<string>(addresses)].sort()).toEqual(addresses)
  for (const address of addresses) expect(address).toMatch(/^0x[0-9a-f]{40}$/)
  expect(Buffer.from(listSha256(addresses)).toString('hex')).toBe(sha256)
})

test('the official file is parsed into its date and the EVM addresses of every asset, in lower case, and nothing else', async () => {
  const list = await read(official)
  expect([...list.addresses].sort()).toEqual(inOfficial)
  expect(list).toMatchObject({ format: 'sdn-advanced-xml', listDate: '2026-11-19', malformed: 1 })
})

test('the result does not depend on how the file is split into chunks', async () => {
  const bytes = Buffer.from(`\uFEFF${official}`)
  await fc.assert(
    fc.asyncProperty(fc.array(fc.nat({ max: bytes.length }), { maxLength: 40 }), async (cuts) => {
      const at = [0, ...cuts.sort((a, b) => a - b), bytes.length]
      const list = await read(...at.slice(1).map((end, index) => bytes.subarray(at[index], end)))
      expect([...list.addresses].sort()).toEqual(inOfficial)
    }),
    { numRuns: 60 },
  )
  const list = await read(...[...bytes].map((byte) => Uint8Array.of(byte)))
  expect(list.addresses.size).toBe(3)
})

test('a file that is truncated anywhere is refused, never read as a shorter list', async () => {
  const end = official.lastIndexOf('</Sanctions>') + '</Sanctions>'.length
  await fc.assert(
    fc.asyncProperty(fc.nat({ max: end - 1 }), async (length) => {
      expect(['malformed', 'empty']).toContain(await refusalOf(official.slice(0, length)))
    }),
    { numRuns: 200 },
  )
})

const bomb = '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;">]>'
const insert = (text: string) => official.replace('<ReferenceValueSets>', `${text}<ReferenceValueSets>`)

test.each([
  ['an entity bomb', official.replace('<Sanctions', `${bomb}<Sanctions`)],
  ['an outside entity', official.replace('<Sanctions', '<!DOCTYPE x SYSTEM "file:///etc/passwd"><Sanctions')],
  ['an unknown entity', insert('<Comment>&b;</Comment>')],
  ['an entity that is not closed', insert('<Comment>a & b</Comment>')],
  ['an invalid character', insert('<Comment>&#x110000;</Comment>')],
  ['a character that XML forbids', insert('<Comment>\u0001</Comment>')],
  ['a reference to the character zero', insert('<Comment>&#0;</Comment>')],
  ['a reference to half a character', insert('<Comment>&#xD800;</Comment>')],
  ['an attribute twice', official.replace('<Sanctions', '<Sanctions a="1" a="2"')],
  ['a hundred attributes', insert(`<A ${Array.from({ length: 100 }, (_, n) => `a${n}="1"`).join(' ')}/>`)],
  ['a prefix without a namespace', insert('<a:A/>')],
  ['two hyphens in a comment', insert('<!-- a -- b -->')],
  ['the end of a CDATA section in a text', insert('<Comment>]]></Comment>')],
  ['an XML declaration inside', insert('<?xml version="1.0"?>')],
  ['a text of two megabytes', insert(`<Comment>${'x'.repeat(2_097_152)}</Comment>`)],
  ['an end tag of something else', insert('<A><B></A></B>')],
  ['another root', official.replaceAll('Sanctions', 'Html')],
  ['a second root', `${official}<Sanctions/>`],
  ['text after the root', `${official}and more`],
  ['an attribute without quotes', insert('<A b=c/>')],
  ['a tag without a name', insert('< a>')],
  ['elements a thousand deep', insert('<A>'.repeat(1_000) + '</A>'.repeat(1_000))],
  ['a tag of two megabytes', insert(`<A b="${'x'.repeat(2_097_152)}"/>`)],
  ['a comment of two megabytes', insert(`<!--${'x'.repeat(2_097_152)}-->`)],
  ['an address of five kilobytes', official.replace('0x098B716B', 'x'.repeat(5_000))],
  ['no day', official.replace(/<DateOfIssue[\s\S]*<\/DateOfIssue>/, '')],
  ['bytes that are not UTF-8', Buffer.concat([Buffer.from(insert('').slice(0, 60)), Buffer.from([0xff, 0xfe])])],
])('an official file with %s is malformed', async (_what, text) => {
  expect(await refusalOf(text)).toBe('malformed')
})

test.each([
  ['nothing', ''],
  ['white space', ' \n\n '],
  ['no address', 'hello\n'],
  ['addresses of other chains alone', '12QtD5BFwRsdNsAZY76UVE1xyCGNTojH9h\nTKZpMLFzZxMpCEuVKDQ9Ju7b5d2rqKMgJX\n'],
  [
    'the official file without a feature',
    official.replaceAll('<Feature ', '<Other ').replaceAll('</Feature>', '</Other>'),
  ],
])('a list with %s is empty', async (_what, text) => {
  expect(await refusalOf(text)).toBe('empty')
})

test('a plain list is read in any letter case and with any line ends; other chains are ignored and malformed entries counted', async () => {
  const list = await read(
    '\uFEFF# list-date: 2026-11-20\r\n0X098B716B8AAF21512996DC57EB0615E2383E2F96\r\n',
    '0x8589427373D6D84E98730D7795D8f6f8731FDA16\n\n# a note\n12QtD5BFwRsdNsAZY76UVE1xyCGNTojH9h\n0x123\n',
    '0xd882cfc20f52f2599d84b8e8d58c7fb62cfe344b',
  )
  expect([...list.addresses].sort()).toEqual(inOfficial)
  expect(list).toMatchObject({ format: 'plain', listDate: '2026-11-20', malformed: 1 })
})

test('a plain list with a line without end, and a list of more than a million addresses, are refused', async () => {
  expect(await refusalOf('0x1\n', 'x'.repeat(100_000))).toBe('malformed')
  async function* many(): AsyncIterable<Uint8Array> {
    for (let part = 0; part < 11; part++) {
      const lines = Array.from(
        { length: 100_000 },
        (_, n) => `0x${(part * 100_000 + n).toString(16).padStart(40, '0')}`,
      )
      yield Buffer.from(`${lines.join('\n')}\n`)
    }
  }
  await expect(readList(many())).rejects.toMatchObject({ code: 'too-large' })
})

test('an endless list is refused at 512 MiB without being kept in memory', async () => {
  const piece = Buffer.from(`# ${'x'.repeat(500)}\n`.repeat(2_085))
  let pieces = 0
  async function* endless(): AsyncIterable<Uint8Array> {
    for (;;) {
      pieces += 1
      yield piece
    }
  }
  await expect(readList(endless())).rejects.toMatchObject({ code: 'too-large' })
  expect(pieces).toBeLessThan(530)
})

import { withoutReferences } from '@purser/protocol'
import { expect, test } from 'vitest'
import document from '../../../openapi.json' with { type: 'json' }
import { keptPages } from '../src/platform/http/encoded.ts'
import { documentPages, tagDocuments } from '../src/platform/http/tag-documents.ts'

const documents = tagDocuments(document)

interface Part {
  readonly paths: Readonly<Record<string, Readonly<Record<string, { readonly operationId: string }>>>>
  readonly webhooks?: unknown
  readonly components: Readonly<Record<string, Readonly<Record<string, unknown>>>>
}

function partOf(tag: string): Part {
  return Object(documents.get(tag))
}

function idsOf(paths: Part['paths']): string[] {
  return Object.values(paths).flatMap((methods) => Object.values(methods).map(({ operationId }) => operationId))
}

test('every operation is in the document of its tag, and in no other', () => {
  const ids = [...documents.keys()].flatMap((tag) => idsOf(partOf(tag).paths))
  expect(ids.toSorted()).toEqual(idsOf(document.paths as Part['paths']).toSorted())
  expect(idsOf(partOf('sessions').paths).every((id) => id.startsWith('sessions.'))).toBe(true)
})

test('the document of a tag has what it refers to and nothing else', () => {
  for (const tag of documents.keys()) {
    const part = partOf(tag)
    expect(JSON.stringify(withoutReferences(part, part)), tag).not.toContain('"$ref"')
    const text = JSON.stringify(part)
    const { securitySchemes, ...others } = part.components
    const names = Object.entries(others).flatMap(([kind, members]) =>
      Object.keys(members).map((one) => `${kind}/${one}`),
    )
    expect(
      names.filter((name) => !text.includes(`"#/components/${name}"`) && !namesProblem(text, name)),
      tag,
    ).toEqual([])
    for (const name of problemsNamed(text)) expect(Object.keys(others['x-problems'] ?? {}), tag).toContain(name)
    expect(securitySchemes, tag).toEqual(document.components.securitySchemes)
  }
})

/** The problems that a document names. */
function problemsNamed(text: string): string[] {
  return [...text.matchAll(/"x-problems":\[([^\]]*)\]/g)].flatMap(([, list = '']) =>
    list.replaceAll('"', '').split(','),
  )
}

function namesProblem(text: string, name: string): boolean {
  return problemsNamed(text).some((problem) => name === `x-problems/${problem}`)
}

test('only the document of webhooks has the events, and each document is less than 130 KB', () => {
  const tags = [...documents.keys()]
  expect(tags.filter((tag) => partOf(tag).webhooks !== undefined)).toEqual(['webhooks'])
  expect(tags.filter((tag) => JSON.stringify(partOf(tag)).length >= 130_000)).toEqual([])
})

test('every tag says what it is about', () => {
  expect(document.tags.filter(({ description }) => !/^[A-Z].{15,}\.$/.test(description))).toEqual([])
})

test('/openapi/<tag>.json has an ETag and is compressed; an unknown tag is answered as missing', async () => {
  const [, page] = documentPages(
    () => document,
    () => ({ status: 404, headers: {}, body: '' }),
  )
  const request = { method: 'GET', url: '', address: '127.0.0.1', headers: {}, body: new Uint8Array() } as const
  const plain = await page?.respond({ '*': 'vaults.json' }, request)
  expect(plain).toEqual(keptPages(plainHeaders)('vaults', () => JSON.stringify(documents.get('vaults')))(request))
  const packed = await page?.respond({ '*': 'vaults.json' }, { ...request, headers: { 'accept-encoding': 'br' } })
  expect(packed?.headers['content-encoding']).toBe('br')
  const etag = plain?.headers.etag ?? ''
  const again = await page?.respond({ '*': 'vaults.json' }, { ...request, headers: { 'if-none-match': etag } })
  expect([etag.length > 20, again?.status]).toEqual([true, 304])
  for (const name of ['vaults', 'none.json', 'constructor.json', ''])
    expect((await page?.respond({ '*': name }, request))?.status, name).toBe(404)
})

const plainHeaders = { 'content-type': 'application/json; charset=utf-8' }

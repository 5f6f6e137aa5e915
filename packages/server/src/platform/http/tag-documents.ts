import { z } from 'zod'
import type { RawResponse } from './call.ts'
import { keptPages } from './encoded.ts'
import type { PublicPage } from './public-page.ts'

const Tags = z.array(z.object({ name: z.string(), description: z.string() })).default([])
type Tag = z.output<typeof Tags>[number]
const Names = z.array(z.string())
type Json = Readonly<Record<string, unknown>>

/** The pages `/openapi.json` and `/openapi/<tag>.json`. Each is made when it is first requested. */
export function documentPages(document: () => Json, missing: () => RawResponse): PublicPage[] {
  const json = keptPages({ 'content-type': 'application/json; charset=utf-8' })
  const respond: PublicPage['respond'] = ({ '*': requested = '' }, request) => {
    const name = /^(\w+)\.json$/.exec(requested)?.[1]
    const tag = tagsOf(document()).find((one) => one.name === name)
    return tag === undefined ? missing() : json(tag.name, () => JSON.stringify(documentOf(document(), tag)))(request)
  }
  return [
    { path: '/openapi.json', respond: (_, request) => json('', () => JSON.stringify(document()))(request) },
    { path: '/openapi/*', respond },
  ]
}

/**
 * One complete OpenAPI document for each tag: its operations, and the components that they refer to, directly or through other components.
 * The events are in the document of `webhooks`.
 */
export function tagDocuments(document: Json): ReadonlyMap<string, Json> {
  return new Map(tagsOf(document).map((tag) => [tag.name, documentOf(document, tag)]))
}

/** The tags of a document, in its order. */
export function tagsOf(document: Json): readonly Tag[] {
  return Tags.parse(document.tags)
}

function documentOf(document: Json, tag: Tag): Json {
  const paths = pathsOf(Object(document.paths), tag.name)
  const webhooks = tag.name === 'webhooks' ? { webhooks: document.webhooks } : {}
  return {
    ...document,
    tags: [tag],
    paths,
    webhooks: undefined,
    ...webhooks,
    components: componentsOf(Object(document.components), [
      document['x-every-response'],
      document['x-every-operation'],
      paths,
      webhooks,
    ]),
  }
}

function pathsOf(paths: Readonly<Record<string, Json>>, tag: string): Json {
  const own = Object.entries(paths).map(([path, methods]) => {
    const members = Object.entries(methods).filter(([, operation]) => Object(operation).tags?.includes(tag))
    return [path, Object.fromEntries(members)] as const
  })
  return Object.fromEntries(own.filter(([, methods]) => Object.keys(methods).length > 0))
}

/** The components that this part of the document needs; security schemes are named without a reference, so all stay. */
function componentsOf(components: Readonly<Record<string, Json>>, part: unknown): Json {
  const needed = new Set<string>()
  const waiting: unknown[] = [part]
  while (waiting.length > 0) {
    for (const name of referencesIn(waiting.pop())) {
      if (needed.has(name)) continue
      needed.add(name)
      const [kind = '', member = ''] = name.split('/')
      waiting.push(components[kind]?.[member])
    }
  }
  const kept = Object.entries(components).map(([kind, members]) => {
    const own = Object.entries(members).filter(([name]) => kind === 'securitySchemes' || needed.has(`${kind}/${name}`))
    return [kind, Object.fromEntries(own)] as const
  })
  return Object.fromEntries(kept.filter(([, members]) => Object.keys(members).length > 0))
}

/** Names such as `schemas/Payment` and `x-problems/not-found`, of all components that this part refers to. */
function referencesIn(part: unknown): string[] {
  const text = JSON.stringify(part) ?? ''
  const problems = [...text.matchAll(/"x-problems":(\[[^\]]*\])/g)].flatMap(([, list = '']) =>
    Names.parse(JSON.parse(list)),
  )
  const references = [...text.matchAll(/"\$ref":"#\/components\/([^"]+)"/g)].map(([, name = '']) => name)
  return [...references, ...problems.map((name) => `x-problems/${name}`)]
}

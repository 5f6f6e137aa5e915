/** The requests in the guides, as a reader sends them: each names an operation, and its body is one that the operation takes. */

import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import document from '../../../openapi.json' with { type: 'json' }
import { operations } from '../src/operations.ts'
import { memberOf, whyNotOfSchema } from './declared.ts'

const root = path.resolve(import.meta.dirname, '../../..')
const pages = globSync(['README.md', 'docs/*.md', 'packages/*/README.md'], { cwd: root }).sort()
const textOf = (page: string): string => readFileSync(path.join(root, page), 'utf8')

interface Block {
  readonly page: string
  readonly language: string
  readonly code: string
}

const blocks: readonly Block[] = pages.flatMap((page) =>
  [...textOf(page).matchAll(/^```(\w*)\n([\s\S]*?)^```$/gm)].map(([, language = '', code = '']) => ({
    page,
    language,
    code,
  })),
)

interface Request {
  readonly page: string
  readonly method: string
  readonly path: string
  readonly body: string | undefined
  /** The example of the response, which is the block after the request. */
  readonly response: string | undefined
}

/** The address of the service in the guides: what follows is a path of its own. */
const service = String.raw`(?:\$BASE|\$PURSER_BASE_URL|https:\/\/pay\.example\.com)`

const requests: readonly Request[] = blocks.flatMap(({ page, language, code }, index) => {
  if (language !== 'sh') return []
  const next = blocks[index + 1]
  const response = next?.page === page && next.language === 'json' ? next.code : undefined
  return code
    .replaceAll('\\\n', ' ')
    .split(/^(?=curl )/m)
    .flatMap((command) => {
      const [, target] = new RegExp(`^curl .*?${service}(/[^\\s"']*)`).exec(command) ?? []
      if (target === undefined) return []
      const body = /-d '([\s\S]*)'(?: \| tee \S+)?\s*$/m.exec(command)?.[1]
      const method = /-X (\w+)/.exec(command)?.[1] ?? (body === undefined ? 'GET' : 'POST')
      return [{ page, method, path: target.split('?')[0] ?? '', body, response }]
    })
})

/** Pages of the service that are no operations. */
const otherPaths = [
  /^\/\.well-known\//,
  /^\/(healthz|readyz|partners|metrics|openapi|reference|docs|problems|llms|sign-in|auth)\b/,
]

function operationAt(method: string, requested: string) {
  return operations.find((operation) => {
    const pattern = operation.path.replaceAll('.', '\\.').replaceAll(/\{\w+\}/g, '[^/]+')
    return operation.method === method && new RegExp(`^${pattern}$`).test(requested)
  })
}

/** The ids that a member takes from a variable of the shell, where they are not those of an own wallet. */
const prefixes: Readonly<Record<string, string>> = { fromWalletId: 'mwt', quoteId: 'qte' }

/** A body as a reader fills it in: an id for `mwt_…`, an address or a hash for `0x…`, a value for a variable of the shell. */
function filledIn(text: string): unknown {
  const filled = text
    .replaceAll(
      /"(\w+)":\s*"'\$\w+'"/g,
      (_, member: string) => `"${member}":"${prefixes[member] ?? 'byw'}_01h455vb4pex5vsknk084sn02q"`,
    )
    .replaceAll(/\b([a-z]{2,4})_…/g, '$1_01h455vb4pex5vsknk084sn02q')
    .replaceAll('"0x…"', '"0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"')
    .replaceAll(/"0x[0-9a-f]{4}…"/g, `"0x${'8f0d'.repeat(16)}"`)
  return JSON.parse(filled)
}

test('every request of a guide is one of an operation, with a body that it takes', () => {
  expect(requests.length).toBeGreaterThan(15)
  const faults = requests.flatMap(({ page, method, path: requested, body }) => {
    if (otherPaths.some((pattern) => pattern.test(requested))) return []
    const operation = operationAt(method, requested)
    const name = `${page}: ${method} ${requested}`
    if (operation === undefined) return [`${name} is no operation`]
    if (body === undefined || body.includes('{ …')) return []
    const issues = operation.input?.safeParse(filledIn(body)).error?.issues ?? []
    return issues.map(({ path: at, message }) => `${name}: ${at.join('/')} ${message}`)
  })
  expect(faults).toEqual([])
})

test('every response of a guide has all members of the schema of its operation, and no others', () => {
  const shown = requests.filter(({ response }) => response !== undefined)
  expect(shown.length).toBeGreaterThan(4)
  const faults = shown.flatMap(({ page, method, path: requested, response = '' }) => {
    const operation = operationAt(method, requested)
    if (operation === undefined) return []
    const example = filledIn(response)
    const responses = Object.entries(
      Object(memberOf(document.paths, operation.path, method.toLowerCase(), 'responses')),
    )
    const [status] = responses.find(([code]) => code.startsWith('2')) ?? []
    const place = [
      'paths',
      operation.path,
      method.toLowerCase(),
      'responses',
      status ?? '',
      'content',
      'application/json',
    ]
    const fault = whyNotOfSchema([...place, 'schema'], example)
    const recorded: unknown = memberOf(document, ...place, 'examples', 'recorded', 'value')
    const extra =
      recorded === undefined ? [] : Object.keys(Object(example)).filter((name) => !(name in Object(recorded)))
    return [...(fault === undefined ? [] : [fault]), ...extra].map((one) => `${page}: ${method} ${requested}: ${one}`)
  })
  expect(faults).toEqual([])
})

/** Variables that every shell has, or that the servers of PostgreSQL have. */
const given = ['HOME', 'PGDATA']

test('a guide sets each variable of its commands, or says where the reader finds it', () => {
  const faults = pages.flatMap((page) => {
    const commands = blocks.filter((one) => one.page === page && one.language === 'sh').map(({ code }) => code)
    const used = commands.flatMap((code) => [...code.matchAll(/\$\{?([A-Z_]{2,})/g)].map(([, name = '']) => name))
    const isSet = (name: string) => new RegExp(`\\b${name}=|\\bfor ${name} in\\b|\`${name}\``).test(textOf(page))
    const readsFile = commands.some((code) => /^(?:set -a; )?\. \.\/\.env\b/m.test(code))
    return [...new Set(used)]
      .filter((name) => !isSet(name) && !given.includes(name) && !readsFile)
      .map((name) => `${page}: $${name}`)
  })
  expect(faults).toEqual([])
})

test('every operation that a guide names by its method and path exists', () => {
  const faults = pages.flatMap((page) =>
    [...textOf(page).matchAll(/`(GET|POST|PUT|PATCH|DELETE) (\/[^`\s?]*)(?:\?[^`]*)?`/g)].flatMap(
      ([, method = '', named = '']) => {
        const isKnown = named.includes('…') || otherPaths.some((pattern) => pattern.test(named))
        return isKnown || operationAt(method, named) !== undefined ? [] : [`${page}: ${method} ${named}`]
      },
    ),
  )
  expect(faults).toEqual([])
})

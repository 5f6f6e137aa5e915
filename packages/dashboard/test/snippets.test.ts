import { expect, test } from 'vitest'
import { type SnippetName, snippetNames, snippetOf } from '../src/pages/quick-start/snippets.ts'

const filled = {
  apiKey: 'svc_test_sk_x',
  baseUrl: 'http://localhost:4100',
  walletId: 'byw_x',
  environment: 'test',
} as const

/** The names that a snippet imports from `@purser/sdk/…`, by the module. */
function importsOf(code: string): readonly (readonly [string, readonly string[]])[] {
  return [...code.matchAll(/import \{ ([^}]+) \} from '(@purser\/sdk\/\w+)'/g)].map(([, names = '', from = '']) => [
    from,
    names.split(', '),
  ])
}

test.each(['express', 'hono', 'fastify', 'next'] satisfies SnippetName[])(
  'the %s snippet imports only what the SDK exports',
  async (name) => {
    const [found, ...others] = importsOf(snippetOf(name, filled).code)
    expect([found?.[0], others]).toEqual([`@purser/sdk/${name}`, []])
    const module: Readonly<Record<string, unknown>> = await import(`../../sdk/src/middleware/${name}.ts`)
    for (const imported of found?.[1] ?? []) expect([imported, typeof module[imported]]).toEqual([imported, 'function'])
  },
)

test('every snippet has the key, the service and, but for MCP, the wallet filled in', () => {
  for (const name of snippetNames) {
    const { code } = snippetOf(name, filled)
    expect([name, code.includes(filled.apiKey), code.includes(filled.baseUrl)]).toEqual([name, true, true])
    expect([name, code.includes(filled.walletId)]).toEqual([name, name !== 'mcp'])
  }
})

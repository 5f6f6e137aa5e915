import type { Environment } from '@purser/sdk'

export const snippetNames = ['express', 'hono', 'fastify', 'next', 'curl', 'mcp'] as const
export type SnippetName = (typeof snippetNames)[number]

export const snippetLabels: Readonly<Record<SnippetName, string>> = {
  express: 'Express',
  hono: 'Hono',
  fastify: 'Fastify',
  next: 'Next',
  curl: 'curl',
  mcp: 'MCP',
}

/** The reader's own values, which fill the placeholders of the snippets. */
export interface Filled {
  readonly apiKey: string
  readonly baseUrl: string
  readonly walletId: string
  readonly environment: Environment
}

export interface Snippet {
  /** Says where the code belongs, and what it does. */
  readonly note: string
  readonly code: string
}

/** Code that runs as it is, with the reader's key, wallet and service in it. */
export function snippetOf(name: SnippetName, filled: Filled): Snippet {
  return { express, hono, fastify, next, curl, mcp }[name](filled)
}

const sells =
  'GET /forecast then costs 0.01 USD: the handler runs when the payment is verified, and its response is sent when the payment is settled.'

/** The lines of the options that all middlewares take. */
function walletLines({ baseUrl, walletId }: Filled, indent: string): string {
  return [
    'apiKey: process.env.PURSER_API_KEY,',
    `baseUrl: '${baseUrl}',`,
    `walletId: '${walletId}',`,
    "publicUrl: 'http://localhost:3000',",
  ]
    .map((line) => `${indent}${line}`)
    .join('\n')
}

function startLine({ apiKey }: Filled): string {
  return `// Start with: PURSER_API_KEY=${apiKey} node server.mjs`
}

function express(filled: Filled): Snippet {
  return {
    note: `Save it as server.mjs. ${sells}`,
    code: `${startLine(filled)}
import { payMiddleware, walletMiddleware } from '@purser/sdk/express'
import express from 'express'

const app = express()
app.use(
  walletMiddleware({
${walletLines(filled, '    ')}
  }),
)
app.get('/forecast', payMiddleware({ price: '0.01' }), (req, res) => {
  res.json({ sky: 'clear' })
})
app.listen(3000)`,
  }
}

function hono(filled: Filled): Snippet {
  return {
    note: `Save it as server.mjs. ${sells}`,
    code: `${startLine(filled)}
import { serve } from '@hono/node-server'
import { payMiddleware, walletMiddleware } from '@purser/sdk/hono'
import { Hono } from 'hono'

const app = new Hono()
app.use(
  walletMiddleware({
${walletLines(filled, '    ')}
  }),
)
app.get('/forecast', payMiddleware({ price: '0.01' }), (c) => c.json({ sky: 'clear' }))
serve({ fetch: app.fetch, port: 3000 })`,
  }
}

function fastify(filled: Filled): Snippet {
  return {
    note: `Save it as server.mjs. ${sells}`,
    code: `${startLine(filled)}
import { payHook, walletPlugin } from '@purser/sdk/fastify'
import Fastify from 'fastify'

const app = Fastify()
await app.register(walletPlugin, {
${walletLines(filled, '  ')}
})
app.get('/forecast', { onRequest: payHook({ price: '0.01' }) }, async () => ({ sky: 'clear' }))
await app.listen({ port: 3000 })`,
  }
}

function next(filled: Filled): Snippet {
  return {
    note: `Save it as app/forecast/route.js. ${sells}`,
    code: `// In .env.local: PURSER_API_KEY=${filled.apiKey}
import { withPayment } from '@purser/sdk/next'

const wallet = {
${walletLines(filled, '  ')}
}
export const GET = withPayment({ ...wallet, price: '0.01' }, () => Response.json({ sky: 'clear' }))`,
  }
}

function curl({ apiKey, baseUrl, walletId, environment }: Filled): Snippet {
  const [path, body, note] =
    environment === 'test'
      ? ([
          'test/payments',
          { walletId, price: '0.01' },
          'Pays your wallet test money, as the button above does.',
        ] as const)
      : ([
          'payments/challenge',
          { walletId, price: '0.01', resource: 'https://api.example.com/forecast' },
          'Makes the challenge that your server sends with a 402; verify and settle follow.',
        ] as const)
  return {
    note,
    code: `curl -s ${baseUrl}/${path} \\
  -H 'Authorization: Bearer ${apiKey}' \\
  -H 'Content-Type: application/json' \\
  -d '${JSON.stringify(body)}'`,
  }
}

function mcp({ apiKey, baseUrl }: Filled): Snippet {
  const env = { PURSER_API_KEY: apiKey, PURSER_BASE_URL: baseUrl }
  const server = { command: 'purser-mcp', args: ['--only', 'wallets,payments'], env }
  return {
    note: 'Install the tarball of @purser/mcp with npm install --global; this goes into the settings of an agent’s client, such as .mcp.json. The agent gets the tools that the key allows.',
    code: JSON.stringify({ mcpServers: { purser: server } }, null, 2),
  }
}

/** The tutorials, followed as they stand on the page. */

import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { fileOf, stepsOf } from './guide-steps.ts'
import { type Reader, startReader } from './reader.ts'

const tutorials = ['quick-start', 'agent-wallet', 'receive-deposits', 'moving', 'production'].map(pathOf)

function pathOf(name: string): string {
  return `docs/${name}.md`
}

let reader: Reader
beforeAll(async () => {
  reader = await startReader()
  await reader.follow(pathOf('quick-start'), { section: '1. Start the service' })
  await reader.follow(pathOf('quick-start'), { section: '2. Make a wallet and a webhook' })
})
afterEach(() => reader.endPrograms())
afterAll(() => reader?.stop())

async function follow(page: string, ...sections: readonly string[]): Promise<void> {
  for (const section of sections) await reader.follow(pathOf(page), { section })
}

test('a tutorial says where to save each program, and installs what it imports', () => {
  const ours = /^(?:\.|node:|@purser\/sdk)/
  for (const page of tutorials) {
    const before = stepsOf(pathOf('quick-start')).filter(({ sections: [section] }) => /^1\./.test(section ?? ''))
    const installed = [...before, ...stepsOf(page)].flatMap(({ code }) =>
      [...code.matchAll(/^npm install (.+)$/gm)].flatMap(([, names = '']) => names.split(' ')),
    )
    for (const step of stepsOf(page).filter(({ language }) => /^(?:js|ts|python)$/.test(language))) {
      const imported = [...step.code.matchAll(/^import .* from '([^']+)'$/gm)].map(([, from = '']) => from)
      const packages = imported.map((from) => /^(?:@[^/]+\/)?[^/]+/.exec(from)?.[0] ?? '')
      expect([page, packages.filter((name) => !ours.test(name) && !installed.includes(name))]).toEqual([page, []])
      if (!step.sections.includes('The server before')) expect([page, fileOf(step)]).toEqual([page, expect.any(String)])
    }
  }
})

const paid = ['4. Try it without a chain', '5. Pay on a chain', '6. See the event']

test('a newcomer sells a route, pays for it, gets a receipt and receives a signed event', async () => {
  await follow('quick-start', '3. Sell a route', ...paid)
})

test.each(['Hono', 'Fastify'])('the route is sold with %s in the same way', async (framework) => {
  await follow('quick-start', framework, ...paid)
})

test('the routes of Next are sold in the same way', async () => {
  // In place of `next dev`, which compiles for many seconds: it calls the handlers with the requests of their paths.
  const host = path.join(reader.folder, 'next.mjs')
  writeFileSync(
    host,
    `import { serve } from '@hono/node-server'
     process.loadEnvFile('.env')
     const app = process.cwd() + '/app'
     const { GET } = await import(app + '/forecast/route.js')
     const { POST } = await import(app + '/purser/route.js')
     const handlers = { GET, POST }
     const fetch = (request) => handlers[request.method](request)
     serve({ fetch, port: Number(process.argv[4]), hostname: '127.0.0.1' }, () => console.log('Ready in 1 s'))`,
  )
  await reader.shell(`next() { exec node ${host} "$@"; }`)
  await follow('quick-start', 'Next', ...paid)
})

test('an agent pays under its cap, is refused above it, and waits for a person above the limit for approvals', async () => {
  const page = stepsOf(pathOf('agent-wallet'))
  const sections = [...new Set(page.map(({ sections: [section = ''] }) => section))]
  const approved = sections.indexOf('6. Approve it')
  await follow('agent-wallet', ...sections.slice(0, approved))
  await reader.approveNext()
  await follow('agent-wallet', ...sections.slice(approved))
})

test('customers pay to their addresses, the server learns of it, and the money is collected', async () => {
  await reader.follow(pathOf('receive-deposits'))
})

test('an x402 server and an mppx server have Purser as their facilitator, and the official clients pay them', async () => {
  for (const section of ['The server after', 'Pay it', 'What is new']) await follow('moving', section)
  await reader.endPrograms()
  await follow('moving', 'An mppx server')
})

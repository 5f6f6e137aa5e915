import { execFile, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { promisify } from 'node:util'
import { signWebhook } from '@purser/protocol'
import { expect, test } from 'vitest'
import { aWorld } from '../../server/test/world.ts'

const run = promisify(execFile)
const cwd = path.resolve(import.meta.dirname, '..')
const hasPython = spawnSync('python3', ['-c', 'import sys; sys.exit(sys.version_info < (3, 9))']).status === 0
const env = { ...process.env, PYTHONDONTWRITEBYTECODE: '1' }

if (!hasPython) console.warn('packages/python is not tested: there is no python3 of version 3.9 or newer')

test.skipIf(!hasPython)('the unit tests of the Python package pass with the standard library alone', async () => {
  const { stderr } = await run('python3', ['-m', 'unittest'], { cwd, env })
  expect(stderr).toMatch(/Ran (?:[5-9]\d|\d{3,}) tests[\s\S]*\nOK/)
})

const page = readFileSync(path.resolve(cwd, '../../docs/python.md'), 'utf8')
/** The block of the guide that contains this text. */
function blockWith(text: string): string {
  const found = [...page.matchAll(/^```python\n([\s\S]*?)^```$/gm)].find(([, code = '']) => code.includes(text))
  if (found?.[1] === undefined) throw new Error(`no block with ${text}`)
  return found[1]
}

test.skipIf(!hasPython)('the programs of the guide run: the client, and sessions with vaults', async () => {
  const world = await aWorld()
  try {
    const org = await world.organisation()
    const { id: walletId } = await world.wallet(org)
    const terms = { price: '0.01', walletId, resource: 'https://api.example.com/forecast', method: 'GET' }
    const credential = { protocol: 'x402', credential: 'stub_payment_accepted' }
    const { body } = await world.call(org.testKey, 'POST', '/payments/verify', { ...terms, ...credential })
    const client = blockWith('from purser import ConflictError')
      .replace('https://pay.example.com', world.base)
      .replace('0x…', '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed')
      .replace('pay_…', String(body.paymentId))
    const given = [`api_key = '${org.testKey}'`, `wallet_id = '${walletId}'`]
    const between = [`payment = {'paymentId': '${body.paymentId}'}`]
    const program = [...given, client, ...between, blockWith('sessions.create'), "print(proof['manifest']['summary'])"]
    const { stdout } = await run('python3', ['-c', program.join('\n')], { cwd: path.join(cwd, 'src'), env })
    expect(stdout.trim().split('\n')).toEqual([
      '0.01',
      ...['vault.created', 'document.added', 'file.added', 'report.ready', 'vault.sealed'],
      'It will not rain',
    ])
  } finally {
    await world.stop()
  }
})

/** In the place of the server of the guide: one on a free port, which ends after two requests. */
const runTwice = [
  "server = HTTPServer(('127.0.0.1', 0), Receiver)",
  'print(server.server_port, flush=True)',
  'server.handle_request()',
  'server.handle_request()',
].join('\n    ')

test.skipIf(!hasPython)(
  'the receiver of the guide takes a signed event, and answers 400 to one that is not',
  async () => {
    const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`
    const program = blockWith('BaseHTTPRequestHandler').replace(
      "HTTPServer(('127.0.0.1', 3000), Receiver).serve_forever()",
      runTwice,
    )
    const receiver = execFile('python3', ['-c', program], {
      cwd: path.join(cwd, 'src'),
      env: { ...env, WEBHOOK_SECRET: secret },
    })
    const ended = once(receiver, 'exit')
    const [port] = await once(receiver.stdout ?? receiver, 'data')
    const url = `http://127.0.0.1:${String(port).trim()}/`
    const body = JSON.stringify({ eventId: 'evt_1', type: 'webhook.test', payload: {} })
    const message = { id: 'evt_1', timestamp: Math.floor(Date.now() / 1_000), body: Buffer.from(body) }
    const headers = { ...signWebhook(message, { secrets: [secret] }) }
    expect((await fetch(url, { method: 'POST', headers, body })).status).toBe(204)
    expect((await fetch(url, { method: 'POST', headers, body: `${body} ` })).status).toBe(400)
    await ended
  },
)

test.skipIf(!hasPython)('every block of Python in the guides parses', async () => {
  const docs = path.resolve(cwd, '../../docs')
  const files = readdirSync(docs).filter((name) => name.endsWith('.md'))
  const blocks = files.flatMap((name) =>
    [...readFileSync(path.join(docs, name), 'utf8').matchAll(/^```python\n([\s\S]*?)^```$/gm)].map(
      ([, code = '']) => code,
    ),
  )
  expect(blocks.length).toBeGreaterThan(6)
  // In a function, since a block may show the body of a handler.
  const parse =
    'import ast, json, sys, textwrap\nfor code in json.loads(sys.argv[1]): ast.parse("def it():\\n" + textwrap.indent(code, " "))'
  await run('python3', ['-c', parse, JSON.stringify(blocks)])
})

test.skipIf(!hasPython)('a Python program sells routes and reads signed events with the running service', async () => {
  const world = await aWorld()
  try {
    const org = await world.organisation('enterprise')
    const { id } = await world.wallet(org)
    const { stdout } = await run('python3', ['-m', 'tests.story', world.base, org.testKey, id], { cwd, env })
    expect(JSON.parse(stdout)).toEqual({
      wsgi: {
        unpaid: [402, true, true],
        bad: [402, false],
        paid: [200, true, 'settled', '0.01', true],
        mpp: [200, true],
      },
      asgi: [402, 200, 'rain', 1],
      events: [
        ['payment.settled', 'payment.settled'],
        ['signature-mismatch', 'signature-mismatch'],
      ],
      conflict: [409, 'wallet-already-registered', true],
      logs: true,
    })
  } finally {
    await world.stop()
  }
})

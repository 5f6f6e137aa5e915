import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { fundNative, fundToken } from '@purser/devnet'
import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts'
import { expect, test } from 'vitest'
import { z } from 'zod'
import document from '../../../openapi.json' with { type: 'json' }
import { operations } from '../src/operations.ts'
import { memberOf, whyNotOfSchema } from './declared.ts'
import { exampleRecorder } from './example-recorder.ts'
import { callEverything, shop, supplier } from './example-story.ts'
import { aWorld, startChain } from './world.ts'

const each = operations.map((operation) => [operation.id, operation] as const)
const placeOf = ({ path, method }: { readonly path: string; readonly method: string }) => [
  'paths',
  path,
  method.toLowerCase(),
]
const jsonBody = ['requestBody', 'content', 'application/json']

/** The places of the bodies of an operation's request, in each media type. */
function requestPlaces(place: readonly string[]): string[][] {
  const types = Object.keys(Object(memberOf(document, ...place, 'requestBody', 'content')))
  return types.map((type) => [...place, 'requestBody', 'content', type])
}

/** The places of the success responses of JSON. */
function responsePlaces(place: readonly string[]): string[][] {
  const responses = Object.entries(Object(memberOf(document, ...place, 'responses')))
  return responses
    .filter(([status, response]) => Number(status) < 300 && memberOf(response, 'content', 'application/json'))
    .map(([status]) => [...place, 'responses', status, 'content', 'application/json'])
}

/** The example of a media type, which may be a component. */
function exampleAt(place: readonly string[]): unknown {
  const reference = memberOf(document, ...place, 'examples', 'recorded', '$ref')
  if (typeof reference !== 'string') return memberOf(document, ...place, 'examples', 'recorded', 'value')
  return memberOf(document.components.examples, reference.slice('#/components/examples/'.length), 'value')
}

test.each(each)('%s has an example of its request and of each success, and all fit their schemas', (_, operation) => {
  const place = placeOf(operation)
  for (const one of [...requestPlaces(place), ...responsePlaces(place)]) {
    const example = exampleAt(one)
    expect(example, one.join(' ')).toBeDefined()
    expect(whyNotOfSchema([...one, 'schema'], example), one.join(' ')).toBeUndefined()
  }
  const body = exampleAt([...place, ...jsonBody])
  if (operation.input !== undefined) expect(operation.input.safeParse(body).error?.issues ?? []).toEqual([])
})

/** Media types of success responses that are not JSON, with their examples. */
const others = operations.flatMap((operation) => {
  const responses = Object.entries(Object(memberOf(document, ...placeOf(operation), 'responses')))
  return responses
    .filter(([status]) => Number(status) < 300)
    .flatMap(([status, response]) =>
      Object.keys(Object(memberOf(response, 'content'))).map((type) => ({ status, type })),
    )
    .filter(({ type }) => type !== 'application/json')
    .map(({ status, type }) => {
      const example = exampleAt([...placeOf(operation), 'responses', status, 'content', type])
      return { id: operation.id, status, type, example, operation }
    })
})

test.each(others)('$id has an example of its $status as $type', ({ example }) => {
  expect(example).toEqual(expect.stringMatching(/\w/))
})

test('the example of a list as CSV has the columns of its items, and a row', () => {
  const lists = others.filter(({ type }) => type === 'text/csv')
  expect(lists.length).toBeGreaterThan(5)
  for (const { id, example, operation } of lists) {
    const [columns, ...rows] = String(example).trimEnd().split('\r\n')
    const { shape } = z.object({ shape: z.record(z.string(), z.unknown()) }).parse(operation.output)
    expect([id, columns]).toEqual([id, Object.keys(shape).join(',')])
    expect([id, rows.length]).toEqual([id, expect.toSatisfy((count: number) => count > 0)])
  }
})

test('every example is what the service answers today', async () => {
  const lines = Object.entries(await recordExamples()).map(
    ([id, call]) => `${JSON.stringify(id)}:${JSON.stringify(call)}`,
  )
  // After a change: npx vitest run recorded-examples -u
  await expect(`{\n${lines.join(',\n')}\n}\n`).toMatchFileSnapshot('../src/recorded-examples.json')
})

/** The examples of a new run, in the order of the committed ones. */
async function recordExamples(): Promise<Readonly<Record<string, unknown>>> {
  const testFaucetKey = generatePrivateKey()
  const [base, ethereum] = await Promise.all([
    startChain({ network: 'base-sepolia' }),
    startChain({ network: 'eth-sepolia' }),
  ])
  const faucet = privateKeyToAddress(testFaucetKey)
  await fundNative(base, faucet, 10n ** 20n)
  await fundToken(base, 'USDC', faucet, 100_000_000n)
  const hook = createServer(({ method }, response) => {
    response.sendDate = false
    if (method === 'GET') response.setHeader('content-type', 'application/json').end('{"sky":"clear"}')
    else response.end()
  }).listen(0, '127.0.0.1')
  await once(hook, 'listening')
  const hookUrl = `http://127.0.0.1:${(hook.address() as AddressInfo).port}/purser`
  const baseUrl = 'https://pay.example.com'
  const world = await aWorld({ chains: [base, ethereum], config: { testFaucetKey, baseUrl, dashboardUrl: baseUrl } })
  try {
    const org = await world.organisation('pro')
    const { record, examples } = exampleRecorder(world, org.testKey, [shop, supplier])
    await callEverything({ world, org, base, ethereum, record, hookUrl })
    const text = JSON.stringify(Object.fromEntries(examples)).replaceAll(hookUrl, 'https://api.example.com/purser')
    return JSON.parse(text)
  } finally {
    hook.close()
    await world.stop()
    await Promise.all([base.stop(), ethereum.stop()])
  }
}

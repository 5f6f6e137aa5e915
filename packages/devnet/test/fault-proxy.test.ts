import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { type DevChain, type FaultProxy, startChain, startFaultProxy } from '../src/index.ts'

let chain: DevChain
let proxy: FaultProxy

beforeAll(async () => {
  chain = await startChain({ network: 'base-sepolia' })
  proxy = await startFaultProxy(chain.rpcUrl)
})
beforeEach(() => proxy.set('pass'))
afterAll(async () => {
  await proxy.stop()
  await chain.stop()
})

test('a request that passes is answered by the node, and counted', async () => {
  const before = proxy.requests
  expect(await (await post(call('eth_chainId'))).json()).toMatchObject({ id: 1, result: '0x14a34' })
  expect(proxy.requests).toBe(before + 1)
  expect(proxy.methods.at(-1)).toBe('eth_chainId')
})

test('a late node answers, but only after its delay', async () => {
  proxy.set({ kind: 'delay', delayMs: 60 })
  const began = performance.now()
  expect((await post(call('eth_chainId'))).status).toBe(200)
  expect(performance.now() - began).toBeGreaterThanOrEqual(59)
})

test('a silent node never answers, and stopping the proxy does not wait for it', async () => {
  const silent = await startFaultProxy(chain.rpcUrl)
  silent.set('hang')
  const response = fetch(silent.url, { method: 'POST', body: call('eth_chainId') })
  await expect.poll(() => silent.methods).toEqual(['eth_chainId'])
  await silent.stop()
  await expect(response).rejects.toThrow()
})

test('a dead node closes the connection, and one that loses the answer has done the work', async () => {
  proxy.set('drop')
  await expect(post(call('evm_mine'))).rejects.toThrow()
  expect(await head()).toBe('0x0')
  proxy.set('lose-answer', ['evm_mine'])
  await expect(post(call('evm_mine'))).rejects.toThrow()
  expect(await head()).toBe('0x1')
})

test('a failing, a rate-limited and a lying node answer as such nodes do', async () => {
  proxy.set('error500')
  expect((await post(call('eth_chainId'))).status).toBe(500)
  proxy.set('rate-limit')
  const limited = await post(call('eth_chainId'))
  expect([limited.status, limited.headers.get('retry-after')]).toEqual([429, '1'])
  proxy.set('garbage')
  await expect((await post(call('eth_chainId'))).json()).rejects.toThrow()
  proxy.set('wrong')
  expect(await (await post(`[${call('eth_chainId')},${call('eth_call')}]`)).json()).toHaveLength(2)
  expect(await (await post(call('eth_chainId'))).json()).toMatchObject({ jsonrpc: '2.0', id: 1, result: {} })
})

test('a fault for one method leaves the others alone', async () => {
  proxy.set('error500', ['eth_sendRawTransaction'])
  expect((await post(call('eth_chainId'))).status).toBe(200)
  expect((await post(call('eth_sendRawTransaction'))).status).toBe(500)
})

function post(body: string): Promise<Response> {
  return fetch(proxy.url, { method: 'POST', headers: { 'content-type': 'application/json' }, body })
}

function call(method: string): string {
  return JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: [] })
}

async function head(): Promise<unknown> {
  const response = await fetch(chain.rpcUrl, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: call('eth_blockNumber'),
  })
  return (await response.json()).result
}

import { createServer } from 'node:http'
import { listen, runAsChild, setting } from './child-side.ts'
import { isRecord } from './parse.ts'

/**
 * A node that serves blocks full of transfers, made on request: its own process, so that its work is nobody else's. The head is the
 * block that was named last at /head/<number>.
 */
const chainId = Number(setting('BENCH_CHAIN_ID'))
const transfersPerBlock = Number(setting('BENCH_TRANSFERS'))
/** Addresses that are paid in every block, in lower case. */
const paid = setting('BENCH_PAID').split(',')
const startSeconds = Math.floor(Date.now() / 1_000) - 600
const transferTopic = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef'
const allBits = `0x${'f'.repeat(512)}`
let head = 0

const word = (value: number): string => value.toString(16).padStart(64, '0')
const quantity = (value: number): string => `0x${value.toString(16)}`
const hashOf = (number: number): string => `0x${word(number + 1)}`
const topicOf = (address: string): string => `0x${'0'.repeat(24)}${address.slice(2)}`

function blockOf(number: number): object | null {
  if (number > head) return null
  return {
    number: quantity(number),
    hash: hashOf(number),
    parentHash: hashOf(number - 1),
    timestamp: quantity(startSeconds + number),
    logsBloom: allBits,
  }
}

function logsOf(number: number, token: string): object[] {
  return Array.from({ length: transfersPerBlock }, (_, index) => {
    const stranger = `0x${(number * transfersPerBlock + index + 1).toString(16).padStart(40, 'e')}`
    const to = paid[index] ?? stranger
    return {
      address: token,
      topics: [transferTopic, topicOf(stranger), topicOf(to)],
      data: `0x${word(1_000_000 + index)}`,
      blockNumber: quantity(number),
      blockHash: hashOf(number),
      transactionHash: `0x${word(number * transfersPerBlock + index + 1)}`,
      transactionIndex: quantity(index),
      logIndex: quantity(index),
      removed: false,
    }
  })
}

function respond(method: string, params: readonly unknown[]): unknown {
  const [first] = params
  if (method === 'eth_chainId') return quantity(chainId)
  if (method === 'eth_getBlockByNumber') return blockOf(first === 'latest' ? head : Number(first))
  if (method !== 'eth_getLogs' || !isRecord(first)) return null
  const [token] = Array.isArray(first.address) ? first.address : []
  const [from, to] = [Number(first.fromBlock ?? head), Number(first.toBlock ?? head)]
  return Array.from({ length: to - from + 1 }, (_, index) => logsOf(from + index, String(token))).flat()
}

function reply(call: unknown): object {
  if (!isRecord(call)) return {}
  const result = respond(String(call.method), Array.isArray(call.params) ? call.params : [])
  return { jsonrpc: '2.0', id: call.id, result }
}

await runAsChild(() =>
  listen(
    createServer(async (request, response) => {
      const named = /^\/head\/(\d+)$/.exec(request.url ?? '')?.[1]
      if (named !== undefined) {
        head = Number(named)
        return void response.end()
      }
      const calls: unknown = JSON.parse(Buffer.concat(await request.toArray()).toString())
      response.setHeader('content-type', 'application/json')
      response.end(JSON.stringify(Array.isArray(calls) ? calls.map(reply) : reply(calls)))
    }),
  ),
)

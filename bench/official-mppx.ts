import { createServer } from 'node:http'
import { mppxServer } from '@purser/devnet/mppx'
import { listen, runAsChild, setting } from './child-side.ts'
import { readBill } from './mppx-side.ts'

/**
 * The official mppx server on its own `node:http` listener: `/dual` offers all of its methods, `/one` only what one
 * wallet of our service offers.
 */
await runAsChild(async () => {
  const { one, dual } = mppxServer(readBill(setting('BENCH_MPPX_BILL')))
  const server = createServer(async (request, response) => {
    const isPaid = await (request.url === '/dual' ? dual : one)(request, response)
    if (!isPaid) return
    response.setHeader('content-type', 'application/json')
    response.end('{"report":"all is well"}')
  })
  return listen(server)
})

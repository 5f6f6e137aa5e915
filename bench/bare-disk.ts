import { createReadStream, createWriteStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import path from 'node:path'
import { pipeline } from 'node:stream/promises'
import { listen, runAsChild, setting } from './child-side.ts'

/**
 * The baseline for uploads and downloads: `node:http` piping to and from the disk. It parses no form, hashes nothing
 * and uses no database. `POST /plain/<n>` responds when the file is written, `POST /flushed/<n>` when it is flushed
 * to the disk, which our service guarantees.
 */
const directory = setting('BENCH_BARE_DIR')
const place = /^\/(plain|flushed)\/(\d{1,6})$/

await runAsChild(() =>
  listen(
    createServer((request, response) => {
      serve(request, response).catch((error: unknown) => {
        console.error(error)
        response.destroy()
      })
    }),
  ),
)

async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const [, kind, name] = place.exec(request.url ?? '') ?? []
  if (kind === undefined || name === undefined) {
    response.writeHead(404, { 'content-length': 0 }).end()
    return
  }
  const file = path.join(directory, `${kind}-${name}`)
  if (request.method === 'POST') {
    await pipeline(request, createWriteStream(file, { flush: kind === 'flushed' }))
    response.writeHead(201, { 'content-length': 0 }).end()
    return
  }
  response.writeHead(200, { 'content-length': (await stat(file)).size })
  await pipeline(createReadStream(file), response)
}

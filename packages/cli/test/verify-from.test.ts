import { createServer, type RequestListener } from 'node:http'
import { expect, onTestFinished, test } from 'vitest'
import { aSealer, sealedBy } from '../../sdk/test/seal-stage.ts'
import { aDirectory, purser } from './stage.ts'

test('keys are fetched from the service that is named, once, and count for its seals', async () => {
  const requested: (string | undefined)[] = []
  const { url, host } = await serving((request, response) => {
    requested.push(request.url)
    response.end(JSON.stringify(sealer.jwks))
  })
  const sealer = aSealer(host)
  const { put } = aDirectory()
  const good = await purser(['verify', put('proof.json', sealedBy(sealer)), '--from', url])
  expect(good).toMatchObject({ code: 0, stderr: '' })
  expect(good.stdout).toContain(`signed with  ${sealer.kid}, a key of ${url}\n`)
  expect(requested).toEqual(['/.well-known/jwks.json'])
  const posing = put('posing.json', sealedBy({ ...sealer, kid: 'did:web:pay.example.com#seal-1' }))
  const bad = await purser(['verify', posing, '--from', url])
  expect(bad).toMatchObject({ code: 1, stderr: expect.stringContaining('key-unknown') })
  expect(bad.stderr).toContain('signed with did:web:pay.example.com#seal-1.\n')
})

test('a service without keys says nothing against a proof: it could not be checked', async () => {
  const { url } = await serving((_, response) => response.writeHead(404).end())
  const { put } = aDirectory()
  const { code, stdout, stderr } = await purser(['verify', put('proof.json', sealedBy(aSealer())), '--from', url])
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
  expect(stderr).toBe(`--from ${url}: The request for the key set failed with status 404.\n`)
})

async function serving(listener: RequestListener): Promise<{ readonly url: string; readonly host: string }> {
  const server = createServer(listener)
  onTestFinished(() => void server.close())
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('the server has no port')
  const host = `127.0.0.1:${address.port}`
  return { url: `http://${host}`, host }
}

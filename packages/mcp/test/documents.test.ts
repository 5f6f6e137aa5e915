import { expect, test } from 'vitest'
import { processorMs } from '../../server/test/processor-time.ts'
import { readResource, resources } from '../src/documents.ts'

test('a thousand reads of an operation that does not exist, or of any resource, take little time', async () => {
  const uris = ['purser://openapi/none', 'purser://openapi/transfers.create', ...resources.map(({ uri }) => uri)]
  const busyMs = await processorMs(async () => {
    for (let count = 0; count < 1_000; count += 1) await readResource(uris[count % uris.length] ?? '')
  })
  expect(busyMs).toBeLessThan(1_000)
})

test('a resource is the same text each time, and no operation has a text that was kept for another', async () => {
  const read = async () => Promise.all(resources.map(({ uri }) => readResource(uri)))
  expect(await read()).toEqual(await read())
  const operation = async (id: string) => JSON.parse((await readResource(`purser://openapi/${id}`))?.text ?? 'null')
  for (const id of ['transfers.create', 'vaults.create', 'none', 'transfers.create'])
    expect((await operation(id))?.operationId).toBe(id === 'none' ? undefined : id)
})

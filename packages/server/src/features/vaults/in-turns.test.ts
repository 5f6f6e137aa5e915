import { expect, test } from 'vitest'
import type { Tenant } from '../../platform/ctx.ts'
import { id } from '../../platform/ids.ts'
import { inTurns } from './in-turns.ts'

const tenants = ['1', '2', '3'].map(
  (digit): Tenant => ({ organisationId: id('org').parse(`org_${digit.repeat(26)}`), environment: 'test' }),
)

test('a process that stops serves no further tenant, whatever is left', async () => {
  const stopping = new AbortController()
  const served: Tenant[] = []
  const serve = async (tenant: Tenant): Promise<boolean> => {
    served.push(tenant)
    if (served.length === 4) stopping.abort()
    return true
  }
  await inTurns(tenants, serve, { log: { error: () => {} }, message: 'failed', stopping: stopping.signal })
  expect(served).toEqual([...tenants, tenants[0]])
})

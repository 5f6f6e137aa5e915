import type { VaultState } from '@purser/sdk'
import { Card, Fact, Facts } from '../../ui/page.tsx'
import { Id, Time } from '../../ui/values.tsx'
import { Ends } from './columns.tsx'

export function VaultFacts({ vault }: { vault: VaultState }) {
  const { id, sessionId, createdAt, ttl, sealedAt, summary, manifestHash } = vault
  return (
    <Card title="Details">
      <Facts>
        <Fact name="Vault">
          <Id value={id} />
        </Fact>
        {sessionId !== null && (
          <Fact name="Session">
            <Id value={sessionId} />
          </Fact>
        )}
        <Fact name="Created">
          <Time at={createdAt} full />
        </Fact>
        <Fact name="Expires">{ttl === null ? <Ends ttl={ttl} /> : <Time at={ttl} full />}</Fact>
        {sealedAt !== null && (
          <Fact name="Sealed">
            <Time at={sealedAt} full />
          </Fact>
        )}
        {summary !== null && <Fact name="Summary">{summary}</Fact>}
        {manifestHash !== null && (
          <Fact name="Manifest hash">
            <Id value={manifestHash} />
          </Fact>
        )}
      </Facts>
    </Card>
  )
}

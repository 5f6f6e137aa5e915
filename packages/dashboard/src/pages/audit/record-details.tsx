import type { AuditRecord } from '@purser/sdk'
import { sentenceCase } from '../../ui/format.ts'
import { Fact, Facts } from '../../ui/page.tsx'
import { RecordSheet } from '../../ui/record-sheet.tsx'
import { Id, Time } from '../../ui/values.tsx'
import { Actor } from './actor.tsx'

/** One record with all that its hash covers. */
export function AuditSheet({ record, onClose }: { record: AuditRecord | undefined; onClose: () => void }) {
  return (
    <RecordSheet title="Record of the audit log" open={record !== undefined} onClose={onClose}>
      {record !== undefined && <Details record={record} />}
    </RecordSheet>
  )
}

function Details({ record }: { record: AuditRecord }) {
  const details = JSON.stringify(record.details, null, 2)
  return (
    <div className="flex flex-col gap-5">
      <p className="font-mono text-lg break-all">{record.action}</p>
      <Facts>
        <Fact name="Actor">
          <Actor record={record} />
        </Fact>
        <Fact name="When">
          <Time at={record.createdAt} full />
        </Fact>
        <Fact name="Target">{record.target === null ? 'none' : <Id value={record.target} whole />}</Fact>
        <Fact name="Environment">
          {record.environment === null ? 'The organisation as a whole' : sentenceCase(record.environment)}
        </Fact>
        <Fact name="Request">
          <Id value={record.requestId} whole />
        </Fact>
        <Fact name="Record">
          <Id value={record.id} whole />
        </Fact>
        <Fact name="Number">
          <span className="num">{record.sequence.toLocaleString('en-US')}</span>
        </Fact>
        <Fact name="Previous hash">
          <Id value={record.previousHash} whole />
        </Fact>
        <Fact name="Hash">
          <Id value={record.hash} whole />
        </Fact>
      </Facts>
      {details !== '{}' && (
        <div>
          <h3 className="mb-1.5 text-sm font-medium">Details</h3>
          <pre className="rounded-control bg-well px-3 py-2 font-mono text-sm break-all whitespace-pre-wrap">
            {details}
          </pre>
        </div>
      )}
    </div>
  )
}

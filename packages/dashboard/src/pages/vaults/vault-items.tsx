import type { VaultDocument, VaultFile, VaultState } from '@purser/sdk'
import { Link } from '@tanstack/react-router'
import { Braces, Download, File as FileIcon, Inbox } from 'lucide-react'
import { buttonClasses } from '../../ui/button.tsx'
import { classes } from '../../ui/classes.ts'
import { byteSize } from '../../ui/format.ts'
import { Card, Empty } from '../../ui/page.tsx'
import { Tip } from '../../ui/tip.tsx'
import { Id } from '../../ui/values.tsx'
import { DocumentPreview, FilePreview } from './preview.tsx'

/** The documents and files of a vault; one of them opens in its place. */
export function VaultItems({ vault, chosen }: { vault: VaultState; chosen: string | undefined }) {
  if (vault.documents.length + vault.files.length === 0)
    return (
      <Card title="Documents and files">
        <Empty icon={<Inbox />} title="This vault is empty">
          Documents and files appear here as soon as they are written.
        </Empty>
      </Card>
    )
  return (
    <Card title="Documents and files" flush>
      <ul>
        {vault.documents.map((document) => (
          <Item key={document.id} item={document} isOpen={document.id === chosen}>
            <DocumentPreview vaultId={vault.id} document={document} />
          </Item>
        ))}
        {vault.files.map((file) => (
          <Item key={file.id} item={file} isOpen={file.id === chosen}>
            <FilePreview vaultId={vault.id} file={file} />
          </Item>
        ))}
      </ul>
    </Card>
  )
}

interface ItemProps {
  readonly item: VaultDocument | VaultFile
  readonly isOpen: boolean
  readonly children: React.ReactNode
}

function Item({ item, isOpen, children }: ItemProps) {
  const isFile = 'mimeType' in item
  const Icon = isFile ? FileIcon : Braces
  return (
    <li className="border-b border-line last:border-b-0">
      <div className="flex items-start gap-3 px-4 py-2.5">
        <Icon className="mt-0.5 size-4 shrink-0 text-ink-3" aria-hidden />
        <div className="min-w-0 flex-1">
          <Link
            to="."
            search={isOpen ? {} : { item: item.id }}
            replace
            resetScroll={false}
            aria-expanded={isOpen}
            className={classes('block font-medium break-words hover:text-accent-text', isOpen && 'text-accent-text')}
          >
            {item.name}
          </Link>
          <p className="flex flex-wrap items-center gap-x-3 text-sm text-ink-2">
            <span>{isFile ? item.mimeType : 'JSON document'}</span>
            <Tip text={`${item.size.toLocaleString('en-US')} bytes`}>
              <span className="num">{byteSize(item.size)}</span>
            </Tip>
            <span className="inline-flex items-center gap-1">
              SHA-256 <Id value={item.sha256} />
            </span>
          </p>
        </div>
        {isFile && item.url !== null && (
          <Tip text={`Download ${item.name}`}>
            <a
              href={item.url}
              download={item.name}
              rel="noreferrer"
              aria-label={`Download ${item.name}`}
              className={classes(buttonClasses('ghost', 'small'), 'size-7 px-0')}
            >
              <Download aria-hidden />
            </a>
          </Tip>
        )}
      </div>
      {isOpen && <div className="border-t border-line bg-page p-4">{children}</div>}
    </li>
  )
}

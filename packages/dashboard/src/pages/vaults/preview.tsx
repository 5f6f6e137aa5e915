import type { VaultDocument, VaultFile } from '@purser/sdk'
import { useQuery } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import { usePurser } from '../../api/context.ts'
import { ErrorBlock } from '../../ui/error-block.tsx'
import { byteSize } from '../../ui/format.ts'
import { Skeleton } from '../../ui/page.tsx'
import { previewBytesMax, previewKind } from './preview-kind.ts'
import { vaultsKey } from './queries.ts'

export function DocumentPreview({ vaultId, document }: { vaultId: string; document: VaultDocument }) {
  const purser = usePurser()
  const whole = useQuery({
    queryKey: [...vaultsKey, 'document', vaultId, document.id],
    queryFn: ({ signal }) => purser.vaults.documents.get(vaultId, document.id, { signal }),
    enabled: document.size <= previewBytesMax,
  })
  if (document.size > previewBytesMax) return <TooLarge size={document.size} />
  if (whole.error !== null) return <ErrorBlock error={whole.error} onRetry={() => whole.refetch()} />
  if (whole.data === undefined) return <Skeleton lines={4} />
  return <Text name={document.name} text={JSON.stringify(whole.data.data ?? {}, null, 2)} />
}

/** Shows a file without running any of it: text as text, bitmaps as pixels, the rest not at all. */
export function FilePreview({ vaultId, file }: { vaultId: string; file: VaultFile }) {
  const kind = previewKind(file)
  if (kind === 'too-large') return <TooLarge size={file.size} />
  if (kind === 'none')
    return <p className="text-ink-2">Files of the type {file.mimeType} are not shown here. Download it to read it.</p>
  return <LoadedPreview vaultId={vaultId} file={file} kind={kind} />
}

function LoadedPreview({ vaultId, file, kind }: { vaultId: string; file: VaultFile; kind: 'text' | 'image' }) {
  const purser = usePurser()
  const content = useQuery({
    queryKey: [...vaultsKey, 'file', vaultId, file.id],
    queryFn: async ({ signal }) => (await purser.vaults.files.get(vaultId, file.id, { signal })).arrayBuffer(),
    staleTime: Number.POSITIVE_INFINITY,
  })
  if (content.error !== null) return <ErrorBlock error={content.error} onRetry={() => content.refetch()} />
  if (content.data === undefined) return <Skeleton lines={6} />
  if (kind === 'image') return <Frame file={file} bytes={content.data} />
  const text = new TextDecoder().decode(content.data)
  return <Text name={file.name} text={isJson(file) ? indented(text) : text} />
}

/** A frame without an origin and without scripts. Its type is one of a few bitmaps, so that nothing in it is read as a document. */
function Frame({ file, bytes }: { file: VaultFile; bytes: ArrayBuffer }) {
  const [url, setUrl] = useState<string>()
  useEffect(() => {
    const made = URL.createObjectURL(new Blob([bytes], { type: file.mimeType }))
    setUrl(made)
    return () => URL.revokeObjectURL(made)
  }, [bytes, file.mimeType])
  if (url === undefined) return <Skeleton lines={6} />
  return (
    <iframe
      title={`Preview of ${file.name}`}
      sandbox=""
      src={url}
      className="h-96 w-full rounded-control border border-line bg-surface"
    />
  )
}

function Text({ name, text }: { name: string; text: string }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a keyboard must be able to scroll it
    <section tabIndex={0} aria-label={`Content of ${name}`} className="max-h-96 overflow-auto">
      <pre className="font-mono text-sm break-words whitespace-pre-wrap">{text}</pre>
    </section>
  )
}

function TooLarge({ size }: { size: number }) {
  return (
    <p className="text-ink-2">
      {byteSize(size)} are more than the {byteSize(previewBytesMax)} that are shown here. Download it to read it.
    </p>
  )
}

function isJson({ mimeType }: VaultFile): boolean {
  return /^application\/(?:[\w.-]+\+)?json\b/.test(mimeType)
}

function indented(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2)
  } catch {
    return text
  }
}

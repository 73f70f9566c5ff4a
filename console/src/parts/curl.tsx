import { ActionIcon, Button, CopyButton, Tooltip } from '@mantine/core'
import { addressOf, type Query, withQuery } from '../api/client'
import { useSession } from '../session'
import { Icon } from './icon'

const quoted = (text: string) => `'${text.replace(/'/g, `'\\''`)}'`

export interface CurlOptions {
  query?: Query
  body?: unknown
  // file is where the body is, and type its type, if it is too long for a line.
  file?: string
  type?: string
  etag?: string
}

// curlOf is the call as a line for a shell. The token stays a variable.
export function curlOf(method: string, path: string, o: CurlOptions & { token: boolean }): string {
  const parts = ['curl -sS']
  if (method !== 'GET') parts.push(`-X ${method}`)
  if (o.token) parts.push('-H "Authorization: Bearer $TOKEN"')
  if (o.etag) parts.push(`-H ${quoted(`If-Match: ${o.etag}`)}`)
  if (o.file) parts.push(`-H ${quoted(`Content-Type: ${o.type}`)} --data-binary ${quoted(`@${o.file}`)}`)
  else if (o.body !== undefined) parts.push(`-H ${quoted('Content-Type: application/json')} -d ${quoted(JSON.stringify(o.body))}`)
  parts.push(quoted(withQuery(addressOf(path).href, o.query)))
  return parts.join(' ')
}

export function useCurl() {
  const { state } = useSession()
  return (method: string, path: string, o: CurlOptions = {}) => curlOf(method, path, { ...o, token: state === 'signed_in' })
}

export function CopyCurl({ line, small }: { line: string; small?: boolean }) {
  return (
    <CopyButton value={line}>
      {({ copied, copy }) =>
        small ? (
          <Tooltip label={copied ? 'Copied' : 'Copy as curl'}>
            <ActionIcon variant="subtle" color="gray" onClick={copy} aria-label="Copy as curl"><Icon name={copied ? 'check' : 'copy'} size={16} /></ActionIcon>
          </Tooltip>
        ) : (
          <Tooltip label={<span className="mono">{line}</span>}>
            <Button variant="default" onClick={copy} leftSection={<Icon name={copied ? 'check' : 'copy'} size={16} />}>{copied ? 'Copied' : 'Copy as curl'}</Button>
          </Tooltip>
        )
      }
    </CopyButton>
  )
}

import { Button } from '@mantine/core'
import { Link } from '@tanstack/react-router'
import { Empty, Page } from '../parts/bits'

export function NotFound() {
  return (
    <Page title="There is no such page">
      <Empty title="The address leads nowhere" action={<Button component={Link} to="/" variant="default">Overview</Button>}>
        It may be of another version of the console.
      </Empty>
    </Page>
  )
}

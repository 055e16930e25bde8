#!/bin/sh
# The database of a course: makes its cluster at the first start.  It listens in the compose file's network alone.
set -eu
data=/var/lib/postgresql/data
bin=$(dirname /usr/lib/postgresql/*/bin/initdb)
if [ ! -e "$data/PG_VERSION" ]; then
    "$bin/initdb" --pgdata="$data" --auth-local=trust --auth-host=scram-sha-256 --encoding=UTF8
    echo "host kalarena kalarena samenet scram-sha-256" >>"$data/pg_hba.conf"
    "$bin/pg_ctl" --pgdata="$data" --options="-c listen_addresses=" --wait start
    psql --quiet --set=password="$KALARENA_DATABASE_PASSWORD" --dbname=postgres <<'SQL'
CREATE ROLE kalarena LOGIN PASSWORD :'password';
CREATE DATABASE kalarena OWNER kalarena;
SQL
    "$bin/pg_ctl" --pgdata="$data" --mode=fast --wait stop
fi
exec "$bin/postgres" -D "$data" -c listen_addresses='*'

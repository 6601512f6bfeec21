# What no plan can be made of is named: the file, the line or the buffer, and the numbers.
try() {
    name=$1
    shift
    cat > "$name.csv"
    belay plan "$name.csv" "$@"
    echo "$name: $?"
}
columns=id,lower,upper,size
printf '%s,offset\na,0,5,10,0\nb,3,8,10,5\n' $columns | try overlap
printf '%s\na,0,5,0\n' $columns | try zero
printf '%s\na,0,5,-3\n' $columns | try negative
printf '%s\na,7,5,3\n' $columns | try backwards
printf '%s\na,0,5,4611686018427387904\nb,0,5,4611686018427387904\n' $columns | try sum
printf '%s\na,0,5,9223372036854775808\n' $columns | try large
printf 'id,lower,end,size\na,0,9223372036854775807,3\n' | try last_moment
printf '%s\na,-9223372036854775808,9223372036854775807,3\n' $columns | try all_time -o -
printf '%s,colour\na,0,5,3,red\n' $columns | try column
printf '%s\na,0,5,NaN\n' $columns | try nan
printf '%s,gaps\na,0,9,5,3-7@0:99\n' $columns | try gap
printf '%s,gaps\na,0,9,5,0-9\n' $columns | try unused
printf '%s,alignment\na,0,9,5,4611686018427387904\n' $columns | try alignment
printf '%s,offset\na,0,9,5,9223372036854775807\n' $columns | try offset
printf '\357\273\277%s\r\na,0,5,3\r\n' $columns | try windows -o -
printf '%s\n' $columns | try no_step --step
printf 'time_us\top\tid\tbytes\n1\ta\t4\t9\n2\tf\t4\t0\n3\tf\t4\t0\n' | try freed_twice
: | try nothing
truncate -s 10G enormous.csv
belay plan enormous.csv
chain=stage,name,fwd_us,bwd_us,out,saved,grad,fwd_tmp,bwd_tmp
printf '\357\273\277%s\r\n1,a,1,1,1,1,1,1,1\r\n' $chain > chain.csv
belay checkpoint chain.csv --budget 99999999999999999999
belay checkpoint chain.csv --budget 0
belay checkpoint chain.csv --budget 100% | grep peak
printf '%s,\377\376\n' $chain > bytes.csv
belay checkpoint bytes.csv
